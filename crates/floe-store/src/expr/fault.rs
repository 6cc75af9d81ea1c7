//! What can be wrong with an expression, in DynamoDB's words.
//!
//! A [`Fault`] is the part of the message behind `Invalid …Expression: `; which parameter of the
//! request is at fault is the [`ExpressionKind`]'s to say.

use std::fmt;

use super::path::Path;
use crate::error::Error;
use crate::value::Value;

/// Which parameter of a request an expression is. Messages begin with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExpressionKind {
    /// `ConditionExpression`
    Condition,
    /// `FilterExpression`
    Filter,
    /// `KeyConditionExpression`
    KeyCondition,
    /// `ProjectionExpression`
    Projection,
    /// `UpdateExpression`
    Update,
}

impl ExpressionKind {
    /// The name of the parameter.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Condition => "ConditionExpression",
            Self::Filter => "FilterExpression",
            Self::KeyCondition => "KeyConditionExpression",
            Self::Projection => "ProjectionExpression",
            Self::Update => "UpdateExpression",
        }
    }

    /// The error for a fault in an expression of this kind.
    pub(super) fn refuse(self, fault: &Fault) -> Error {
        Error::validation(format!("Invalid {}: {fault}", self.as_str()))
    }
}

impl fmt::Display for ExpressionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What is wrong with an expression.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Fault {
    Empty,
    TooLong,
    Syntax {
        token: String,
        near: String,
    },
    RedundantParentheses,
    TooManyOperators(usize),
    UnknownFunction(String),
    FunctionOutsideCondition(String),
    FunctionOutsideUpdate(String),
    MisplacedFunction(String),
    ReservedWord(String),
    IndexOutOfRange(String),
    TooManySteps(usize),
    EmptyName,
    UndefinedName(String),
    UndefinedValue(String),
    OperandCount {
        function: String,
        count: usize,
    },
    NeedsPath(&'static str),
    NotDistinct {
        operator: &'static str,
        path: Path,
    },
    OperandType {
        operator: &'static str,
        operand: &'static str,
    },
    ActionOperandType {
        action: &'static str,
        operand: &'static str,
    },
    UnknownTypeName(String),
    BoundTypes {
        low: Box<Value>,
        high: Box<Value>,
    },
    BoundOrder {
        low: Box<Value>,
        high: Box<Value>,
    },
    TooManyChoices(usize),
    SectionTwice(&'static str),
    Overlap(Path, Path),
    Conflict(Path, Path),
    KeyOperator(&'static str),
    KeyNesting,
    KeyNotFirst(&'static str),
    KeyNameTwice,
    KeyPath,
    KeyMissing,
    KeyConditionTwice,
    /// The postfix form does not reduce to one tree. The grammars make no such form; should one of
    /// them ever do, the request is refused and not the process ended.
    Unbalanced,
}

impl fmt::Display for Fault {
    // A catalogue: one arm per message.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const KEY: &str = "Invalid condition in KeyConditionExpression:";
        match self {
            Self::Empty => f.write_str("The expression can not be empty;"),
            Self::TooLong => f.write_str("Expression size has exceeded the maximum allowed size;"),
            Self::Syntax { token, near } => {
                write!(f, "Syntax error; token: \"{token}\", near: \"{near}\"")
            }
            Self::RedundantParentheses => f.write_str("The expression has redundant parentheses;"),
            Self::TooManyOperators(count) => write!(
                f,
                "The expression contains too many operators; operator count: {count}"
            ),
            Self::UnknownFunction(name) => write!(f, "Invalid function name; function: {name}"),
            Self::FunctionOutsideCondition(name) => write!(
                f,
                "The function is not allowed in an update expression; function: {name}"
            ),
            Self::FunctionOutsideUpdate(name) => write!(
                f,
                "The function is not allowed in a condition expression; function: {name}"
            ),
            Self::MisplacedFunction(name) => write!(
                f,
                "The function is not allowed to be used this way in an expression; function: {name}"
            ),
            Self::ReservedWord(word) => write!(
                f,
                "Attribute name is a reserved keyword; reserved keyword: {word}"
            ),
            Self::IndexOutOfRange(digits) => write!(
                f,
                "List index is not within the allowable range; index: [{digits}]"
            ),
            Self::TooManySteps(steps) => write!(
                f,
                "The document path has too many nesting levels; nesting levels: {steps}"
            ),
            Self::EmptyName => f.write_str("Empty attribute name"),
            Self::UndefinedName(name) => write!(
                f,
                "An expression attribute name used in the document path is not defined; \
                 attribute name: {name}"
            ),
            Self::UndefinedValue(value) => write!(
                f,
                "An expression attribute value used in expression is not defined; \
                 attribute value: {value}"
            ),
            Self::OperandCount { function, count } => write!(
                f,
                "Incorrect number of operands for operator or function; \
                 operator or function: {function}, number of operands: {count}"
            ),
            Self::NeedsPath(function) => write!(
                f,
                "Operator or function requires a document path; operator or function: {function}"
            ),
            Self::NotDistinct { operator, path } => write!(
                f,
                "The first operand must be distinct from the remaining operands for this operator \
                 or function; operator: {operator}, first operand: {}",
                path.as_list()
            ),
            Self::OperandType { operator, operand } => write!(
                f,
                "Incorrect operand type for operator or function; \
                 operator or function: {operator}, operand type: {operand}"
            ),
            // DynamoDB names the same set of types for `DELETE` as for `ADD`.
            Self::ActionOperandType { action, operand } => write!(
                f,
                "Incorrect operand type for operator or function; operator: {action}, \
                 operand type: {operand}, typeSet: ALLOWED_FOR_ADD_OPERAND"
            ),
            Self::UnknownTypeName(name) => write!(
                f,
                "Invalid attribute type name found; type: {name}, \
                 valid types: {{B,NULL,SS,BOOL,L,BS,N,NS,S,M}}"
            ),
            Self::BoundTypes { low, high } => write!(
                f,
                "The BETWEEN operator requires same data type for lower and upper bounds; \
                 lower bound operand: {}, upper bound operand: {}",
                Bound(low),
                Bound(high)
            ),
            Self::BoundOrder { low, high } => write!(
                f,
                "The BETWEEN operator requires upper bound to be greater than or equal to lower \
                 bound; lower bound operand: {}, upper bound operand: {}",
                Bound(low),
                Bound(high)
            ),
            Self::TooManyChoices(count) => write!(
                f,
                "The IN operator is provided with too many operands; number of operands: {count}"
            ),
            Self::SectionTwice(section) => write!(
                f,
                "The \"{section}\" section can only be used once in an update expression;"
            ),
            Self::Overlap(one, two) => fmt_clash(f, "overlap", one, two),
            Self::Conflict(one, two) => fmt_clash(f, "conflict", one, two),
            Self::KeyOperator(operator) => write!(
                f,
                "Invalid operator used in KeyConditionExpression: {operator}"
            ),
            Self::KeyNesting => {
                f.write_str("KeyConditionExpressions cannot contain nested operations")
            }
            Self::KeyNotFirst(operator) => write!(
                f,
                "{KEY} {operator} operator must have the key attribute as its first operand"
            ),
            Self::KeyNameTwice => {
                write!(f, "{KEY} Multiple attribute names used in one condition")
            }
            Self::KeyPath => {
                f.write_str("KeyConditionExpressions cannot have conditions on nested attributes")
            }
            Self::KeyMissing => write!(f, "{KEY} No key attribute specified"),
            Self::KeyConditionTwice => {
                f.write_str("KeyConditionExpressions must only contain one condition per key")
            }
            Self::Unbalanced => f.write_str("postfix form does not reduce to one tree"),
        }
    }
}

fn fmt_clash(f: &mut fmt::Formatter<'_>, how: &str, one: &Path, two: &Path) -> fmt::Result {
    write!(
        f,
        "Two document paths {how} with each other; must remove or rewrite one of these paths; \
         path one: {}, path two: {}",
        one.as_list(),
        two.as_list()
    )
}

/// A bound of `BETWEEN` as messages print it: `AttributeValue: {S:a}`.
struct Bound<'a>(&'a Value);

impl fmt::Display for Bound<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AttributeValue: {{{}:", self.0.value_type())?;
        match self.0 {
            Value::S(text) => f.write_str(text)?,
            // DynamoDB prints the buffer, not what is in it.
            Value::B(bytes) => {
                let len = bytes.len();
                write!(f, "java.nio.HeapByteBuffer[pos=0 lim={len} cap={len}]")?;
            }
            other => write!(f, "{other:?}")?,
        }
        f.write_str("}")
    }
}
