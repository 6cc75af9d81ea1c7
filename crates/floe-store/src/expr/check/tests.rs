//! Trees built in code: the same rules as for texts, with the same messages.

use crate::error::{Error, Result};
use crate::expr::condition::{Condition, Operand};
use crate::expr::path::Path;
use crate::expr::projection::Paths;
use crate::expr::render::Renderer;
use crate::expr::tests::{Random, list, path, strings};
use crate::expr::update::{SetOperand, Update};
use crate::expr::{ExpressionKind, KeyCondition, KeyOp};
use crate::item::Item;
use crate::value::Value;

#[track_caller]
fn rejected(result: &Result<()>, message: &str) {
    assert_eq!(*result, Err(Error::validation(message)));
}

const TOO_MANY: &str = "The expression contains too many operators; operator count: 301";

#[test]
fn errors_name_the_kind_of_expression() {
    let condition = Condition::lt(path("a"), true);
    let detail = "Incorrect operand type for operator or function; \
                  operator or function: <, operand type: BOOL";
    rejected(
        &condition.check(),
        &format!("Invalid ConditionExpression: {detail}"),
    );
    rejected(
        &condition.check_as(ExpressionKind::Filter),
        &format!("Invalid FilterExpression: {detail}"),
    );
}

#[test]
fn invalid_conditions_are_rejected() {
    let a = || path("a");
    for (condition, detail) in [
        (
            Condition::eq(a(), a()),
            "The first operand must be distinct from the remaining operands for this operator or \
             function; operator: =, first operand: [a]",
        ),
        (
            Condition::attribute_exists("b").and(Condition::begins_with(a(), list([])).not()),
            "Incorrect operand type for operator or function; \
             operator or function: begins_with, operand type: L",
        ),
        (
            Condition::between(a(), 2, 1),
            "The BETWEEN operator requires upper bound to be greater than or equal to lower bound; \
             lower bound operand: AttributeValue: {N:2}, upper bound operand: AttributeValue: {N:1}",
        ),
        (
            Condition::is_in(a(), vec![1; 101]),
            "The IN operator is provided with too many operands; number of operands: 101",
        ),
        (
            Condition::In(a().into(), vec![]),
            "Syntax error; token: \")\", near: \"()\"",
        ),
        (
            Condition::attribute_exists((0..32).fold(a(), |path, _| path.index(0))),
            "The document path has too many nesting levels; nesting levels: 33",
        ),
        (
            Condition::gt(Operand::Size(a().index(usize::MAX)), 1),
            "List index is not within the allowable range; index: [18446744073709551615]",
        ),
        (
            Condition::eq(Path::attribute(""), 1),
            "Empty attribute name",
        ),
        (Condition::eq(1, a().field("")), "Empty attribute name"),
    ] {
        rejected(
            &condition.check(),
            &format!("Invalid ConditionExpression: {detail}"),
        );
    }
    assert_eq!(Condition::is_in(a(), vec![1; 100]).check(), Ok(()));
}

#[test]
fn number_of_operators_is_limited() {
    let leaf = || Condition::attribute_exists("a");
    let joined = |count: usize| (1..count).fold(leaf(), |tree, _| tree.and(leaf()));
    assert_eq!(joined(150).not().check(), Ok(()));
    let message = format!("Invalid ConditionExpression: {TOO_MANY}");
    rejected(&joined(151).check(), &message);
    let negated = |count: usize| (0..count).fold(leaf(), |tree, _| tree.not());
    assert_eq!(negated(299).check(), Ok(()));
    rejected(&negated(300).check(), &message);
    // Far too deep for recursion.
    rejected(&joined(300_000).check(), &message);
    rejected(&negated(300_000).check(), &message);
    let sizes = vec![Operand::Size(path("a")); 100];
    let sizes = || Condition::In(1.into(), sizes.clone());
    assert_eq!(sizes().and(sizes()).check(), Ok(()));
    rejected(&sizes().and(sizes()).and(sizes()).check(), &message);
}

#[test]
fn invalid_updates_are_rejected() {
    let b = || SetOperand::from(path("b"));
    for (update, detail) in [
        (
            Update::new().set("a", 1).remove("a"),
            "Two document paths overlap with each other; must remove or rewrite one of these paths; \
             path one: [a], path two: [a]",
        ),
        (
            Update::new().add(path("a.b"), 1).remove(path("a[1]")),
            "Two document paths conflict with each other; must remove or rewrite one of these paths; \
             path one: [a, [1]], path two: [a, b]",
        ),
        (
            Update::new().add("a", "x"),
            "Incorrect operand type for operator or function; operator: ADD, \
             operand type: STRING, typeSet: ALLOWED_FOR_ADD_OPERAND",
        ),
        (
            Update::new().delete("a", 1),
            "Incorrect operand type for operator or function; operator: DELETE, \
             operand type: NUMBER, typeSet: ALLOWED_FOR_ADD_OPERAND",
        ),
        (
            Update::new().set_sum("a", b(), strings(["x"])),
            "Incorrect operand type for operator or function; \
             operator or function: +, operand type: SS",
        ),
        (
            Update::new().set(
                "a",
                SetOperand::if_not_exists("b", SetOperand::list_append(b(), 1)),
            ),
            "Incorrect operand type for operator or function; \
             operator or function: list_append, operand type: N",
        ),
        (
            Update::new().set(
                "a",
                SetOperand::list_append(SetOperand::list_append(b(), list([])), b()),
            ),
            "The function is not allowed to be used this way in an expression; function: list_append",
        ),
        (
            Update::new().set("a", Path::attribute("")),
            "Empty attribute name",
        ),
        (
            Update::new().remove(path("a").index(2_147_483_648)),
            "List index is not within the allowable range; index: [2147483648]",
        ),
    ] {
        rejected(
            &update.check(),
            &format!("Invalid UpdateExpression: {detail}"),
        );
    }
    assert_eq!(Update::new().check(), Ok(()));
    let message = format!("Invalid UpdateExpression: {TOO_MANY}");
    let nested = |depth: usize| {
        let inner = (0..depth).fold(b(), |inner, _| SetOperand::if_not_exists("c", inner));
        Update::new().set("a", inner)
    };
    assert_eq!(nested(300).check(), Ok(()));
    rejected(&nested(301).check(), &message);
    rejected(&nested(300_000).check(), &message);
    assert_eq!(nested(299).set_sum("x", 1, 2).check(), Ok(()));
    rejected(&nested(300).set_sum("x", 1, 2).check(), &message);
}

#[test]
fn invalid_projections_and_key_conditions_are_rejected() {
    let check = |paths: &[&str]| Paths(paths.iter().map(|text| path(text)).collect()).check();
    assert_eq!(check(&["a", "b.c", "b.d", "c[0]", "c[1].x"]), Ok(()));
    rejected(
        &check(&[]),
        "Invalid ProjectionExpression: The expression can not be empty;",
    );
    rejected(
        &check(&["a.b", "x", "a"]),
        "Invalid ProjectionExpression: Two document paths overlap with each other; must remove or \
         rewrite one of these paths; path one: [a, b], path two: [a]",
    );

    let pk = || KeyCondition::partition("pk", "p");
    for (condition, detail) in [
        (
            pk().and("pk", KeyOp::Lt("x".into())),
            "KeyConditionExpressions must only contain one condition per key",
        ),
        (
            pk().and("sk", KeyOp::BeginsWith(1.into())),
            "Incorrect operand type for operator or function; \
             operator or function: begins_with, operand type: N",
        ),
        (
            pk().and("sk", KeyOp::Ge(Value::Null)),
            "Incorrect operand type for operator or function; \
             operator or function: >=, operand type: NULL",
        ),
        (
            pk().and("sk", KeyOp::Between("b".into(), "a".into())),
            "The BETWEEN operator requires upper bound to be greater than or equal to lower bound; \
             lower bound operand: AttributeValue: {S:b}, upper bound operand: AttributeValue: {S:a}",
        ),
        (
            pk().and("sk", KeyOp::Between("b".into(), 1.into())),
            "The BETWEEN operator requires same data type for lower and upper bounds; \
             lower bound operand: AttributeValue: {S:b}, upper bound operand: AttributeValue: {N:1}",
        ),
        (KeyCondition::partition("", "p"), "Empty attribute name"),
    ] {
        rejected(
            &condition.check(),
            &format!("Invalid KeyConditionExpression: {detail}"),
        );
    }
}

#[test]
fn nesting_of_literals_is_limited() {
    let nested = |levels: usize| (1..levels).fold(Value::from(1), |value, _| Value::L(vec![value]));
    let message = "Nesting Levels have exceeded supported limits: \
                   Attributes in the item have nested levels beyond supported limit";
    assert_eq!(Condition::eq(path("a"), nested(33)).check(), Ok(()));
    rejected(&Condition::eq(path("a"), nested(34)).check(), message);
    assert_eq!(Update::new().set("a", nested(33)).check(), Ok(()));
    rejected(
        &Update::new()
            .set("a", SetOperand::if_not_exists("b", nested(34)))
            .check(),
        message,
    );
}

/// Finds clashes by comparing all pairs of paths.
fn clash_of_pairs(paths: &[Path]) -> bool {
    let steps = |path: &Path| -> Vec<String> {
        let root = format!(".{}", path.root());
        let rest = path.rest().iter().map(|segment| match segment {
            crate::expr::Segment::Name(name) => format!(".{name}"),
            crate::expr::Segment::Index(at) => format!("[{at}"),
        });
        std::iter::once(root).chain(rest).collect()
    };
    paths.iter().enumerate().any(|(n, one)| {
        paths.iter().take(n).any(|two| {
            let (one, two) = (steps(one), steps(two));
            match one.iter().zip(&two).find(|(a, b)| a != b) {
                None => true,
                Some((a, b)) => a.as_bytes()[0] != b.as_bytes()[0],
            }
        })
    })
}

#[test]
fn clashing_paths_match_pairwise_comparison() {
    let mut random = Random::new(23);
    let mut clashes = 0;
    for _ in 0..20_000 {
        let paths: Vec<_> = (0..random.below(5)).map(|_| random.path()).collect();
        let found = super::check_disjoint(paths.iter()).is_err();
        assert_eq!(found, clash_of_pairs(&paths), "paths={paths:?}");
        clashes += usize::from(found);
    }
    assert!((2_000..18_000).contains(&clashes), "clashes={clashes}");
}

#[test]
fn trees_pass_the_check_iff_their_text_parses() {
    let mut random = Random::new(29);
    let (mut passed, mut failed) = (0, 0);
    for _ in 0..4_000 {
        let condition = random.condition(2);
        let mut renderer = Renderer::new();
        let text = renderer.condition(&condition);
        let parsed = renderer.parser().condition(&text).map(drop);
        assert_eq!(parsed, condition.check(), "text={text}");

        let update = random.update();
        if update.is_empty() {
            continue;
        }
        let mut renderer = Renderer::new();
        let text = renderer.update(&update);
        let parsed = renderer.parser().update(&text).map(drop);
        assert_eq!(parsed.is_ok(), update.check().is_ok(), "text={text}");
        passed += usize::from(parsed.is_ok());
        failed += usize::from(parsed.is_err());
    }
    assert!(
        passed > 400 && failed > 400,
        "passed={passed} failed={failed}"
    );
}

#[test]
fn empty_names_in_literals_are_rejected_on_every_level() {
    let empty = || Value::M(Item::new().with("", 1));
    let inside = || Value::L(vec![1.into(), Value::M(Item::new().with("m", empty()))]);
    let a = || path("a");
    for literal in [empty(), inside()] {
        let literal = || literal.clone();
        for condition in [
            Condition::eq(a(), literal()),
            Condition::is_in(a(), [1.into(), literal()]),
            Condition::contains(a(), literal()),
            Condition::attribute_exists("b").and(Condition::ne(literal(), a()).not()),
            // Empty names are reported before other faults of the tree.
            Condition::lt(a(), literal()),
        ] {
            rejected(&condition.check(), "Empty attribute name");
            let filter = condition.check_as(ExpressionKind::Filter);
            rejected(&filter, "Empty attribute name");
        }
        for update in [
            Update::new().set("a", literal()),
            Update::new().set("a", SetOperand::if_not_exists("b", literal())),
            Update::new().add("a", literal()),
        ] {
            rejected(&update.check(), "Empty attribute name");
        }
        let key = KeyCondition::partition("p", literal());
        rejected(&key.check(), "Empty attribute name");
    }
    let named = Value::M(Item::new().with(" ", "").with("m", Value::M(Item::new())));
    assert_eq!(Condition::eq(a(), named.clone()).check(), Ok(()));
    assert_eq!(Update::new().set("a", named).check(), Ok(()));
}

#[test]
fn empty_names_are_detected_down_to_the_nesting_limit() {
    let lists = |levels: usize| {
        let innermost = Value::M(Item::new().with("", 1));
        (0..levels).fold(innermost, |inner, _| Value::L(vec![inner]))
    };
    let check = |levels: usize| Condition::eq(path("a"), lists(levels)).check();
    rejected(&check(31), "Empty attribute name");
    rejected(&check(32), "Empty attribute name");
    rejected(
        &check(33),
        "Nesting Levels have exceeded supported limits: Attributes in the item have nested levels \
         beyond supported limit",
    );
}
