//! Faults of expressions, with DynamoDB's messages.
//!
//! A [`Fault`] prints the part of the message after `Invalid …Expression: `; the [`ExpressionKind`] adds the parameter
//! of the request.

use std::fmt;

use super::path::Path;
use crate::declare::named;
use crate::error::Error;
use crate::value::{Value, ValueType};

named! {
    /// The parameter of a request that an expression belongs to. Messages start with it.
    pub enum ExpressionKind {
        /// `ConditionExpression`
        Condition = "ConditionExpression",
        /// `FilterExpression`
        Filter = "FilterExpression",
        /// `KeyConditionExpression`
        KeyCondition = "KeyConditionExpression",
        /// `ProjectionExpression`
        Projection = "ProjectionExpression",
        /// `UpdateExpression`
        Update = "UpdateExpression",
    }
}

impl Fault {
    /// The fault of an operand whose type the operator or function does not accept.
    pub(super) const fn operand_type(operator: &'static str, unfit: ValueType) -> Self {
        let operand = unfit.as_str();
        Self::OperandType { operator, operand }
    }
}

impl ExpressionKind {
    /// Returns the error for a fault in an expression of this kind.
    pub(super) fn error(self, fault: &Fault) -> Error {
        Error::validation(format!("Invalid {}: {fault}", self.as_str()))
    }
}

/// Declares the faults of expressions with their messages.
macro_rules! faults {
    ($(
        $(#[$doc:meta])*
        $fault:ident
            $( ( $($part:ident: $part_type:ty),+ ) )?
            $( { $($field:ident: $field_type:ty),+ } )?
            = $message:literal $(, $argument:expr)*;
    )+) => {
        /// A fault of an expression.
        #[derive(Clone, Debug, PartialEq)]
        pub(super) enum Fault {
            $( $(#[$doc])* $fault $( ( $($part_type),+ ) )? $( { $($field: $field_type),+ } )?, )+
        }

        impl fmt::Display for Fault {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {$(
                    Self::$fault $( ( $($part),+ ) )? $( { $($field),+ } )? => {
                        write!(f, $message $(, $argument)*)
                    }
                )+}
            }
        }
    };
}

/// The prefix of the messages for some key condition faults.
const KEY: &str = "Invalid condition in KeyConditionExpression:";

faults! {
    Empty = "The expression can not be empty;";
    TooLong = "Expression size has exceeded the maximum allowed size;";
    Syntax { token: String, near: String } = "Syntax error; token: \"{token}\", near: \"{near}\"";
    RedundantParentheses = "The expression has redundant parentheses;";
    TooManyOperators(count: usize) = "The expression contains too many operators; operator count: {count}";
    UnknownFunction(name: String) = "Invalid function name; function: {name}";
    FunctionOutsideCondition(name: String) = "The function is not allowed in an update expression; function: {name}";
    FunctionOutsideUpdate(name: String) = "The function is not allowed in a condition expression; function: {name}";
    MisplacedFunction(name: String) =
        "The function is not allowed to be used this way in an expression; function: {name}";
    ReservedWord(word: String) = "Attribute name is a reserved keyword; reserved keyword: {word}";
    IndexOutOfRange(digits: String) = "List index is not within the allowable range; index: [{digits}]";
    TooManySteps(steps: usize) = "The document path has too many nesting levels; nesting levels: {steps}";
    EmptyName = "Empty attribute name";
    UndefinedName(name: String) =
        "An expression attribute name used in the document path is not defined; \
         attribute name: {name}";
    UndefinedValue(value: String) =
        "An expression attribute value used in expression is not defined; \
         attribute value: {value}";
    OperandCount { function: String, count: usize } =
        "Incorrect number of operands for operator or function; \
         operator or function: {function}, number of operands: {count}";
    NeedsPath(function: &'static str) =
        "Operator or function requires a document path; operator or function: {function}";
    NotDistinct { operator: &'static str, path: Path } =
        "The first operand must be distinct from the remaining operands for this operator \
         or function; operator: {operator}, first operand: {}", path.as_list();
    OperandType { operator: &'static str, operand: &'static str } =
        "Incorrect operand type for operator or function; \
         operator or function: {operator}, operand type: {operand}";
    // DynamoDB prints the same set of types for `DELETE` as for `ADD`.
    ActionOperandType { action: &'static str, operand: &'static str } =
        "Incorrect operand type for operator or function; operator: {action}, \
         operand type: {operand}, typeSet: ALLOWED_FOR_ADD_OPERAND";
    UnknownTypeName(name: String) =
        "Invalid attribute type name found; type: {name}, \
         valid types: {{B,NULL,SS,BOOL,L,BS,N,NS,S,M}}";
    BoundTypes(low: Box<Value>, high: Box<Value>) =
        "The BETWEEN operator requires same data type for lower and upper bounds; \
         lower bound operand: {}, upper bound operand: {}", bound(low), bound(high);
    BoundOrder(low: Box<Value>, high: Box<Value>) =
        "The BETWEEN operator requires upper bound to be greater than or equal to lower \
         bound; lower bound operand: {}, upper bound operand: {}", bound(low), bound(high);
    TooManyChoices(count: usize) = "The IN operator is provided with too many operands; number of operands: {count}";
    SectionTwice(section: &'static str) = "The \"{section}\" section can only be used once in an update expression;";
    Overlap(one: Path, two: Path) =
        "Two document paths overlap with each other; must remove or rewrite one of these paths; \
         path one: {}, path two: {}", one.as_list(), two.as_list();
    Conflict(one: Path, two: Path) =
        "Two document paths conflict with each other; must remove or rewrite one of these paths; \
         path one: {}, path two: {}", one.as_list(), two.as_list();
    KeyOperator(operator: &'static str) = "Invalid operator used in KeyConditionExpression: {operator}";
    KeyNesting = "KeyConditionExpressions cannot contain nested operations";
    KeyNotFirst(operator: &'static str) =
        "{KEY} {operator} operator must have the key attribute as its first operand";
    KeyNameTwice = "{KEY} Multiple attribute names used in one condition";
    KeyPath = "KeyConditionExpressions cannot have conditions on nested attributes";
    KeyMissing = "{KEY} No key attribute specified";
    KeyConditionTwice = "KeyConditionExpressions must only contain one condition per key";
    /// The postfix form does not reduce to one tree. The grammars never produce such a form; if one did, the request is
    /// rejected instead of panicking.
    Unbalanced = "postfix form does not reduce to one tree";
}

/// Prints a bound of `BETWEEN` as in messages: `AttributeValue: {S:a}`.
fn bound(value: &Value) -> String {
    let shown = match value {
        Value::S(text) => text.to_string(),
        // DynamoDB prints the Java buffer, not its content.
        Value::B(bytes) => {
            let len = bytes.len();
            format!("java.nio.HeapByteBuffer[pos=0 lim={len} cap={len}]")
        }
        other => format!("{other:?}"),
    };
    format!("AttributeValue: {{{}:{shown}}}", value.value_type())
}
