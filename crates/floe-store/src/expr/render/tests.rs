//! Tests of rendering.

use super::Renderer;
use crate::expr::condition::{Condition, Operand};
use crate::expr::path::Path;
use crate::expr::projection::Paths;
use crate::expr::tests::{Random, list, path, strings};
use crate::expr::update::{SetOperand, Update};
use crate::expr::{KeyCondition, KeyOp};
use crate::text::Name;
use crate::value::{Value, ValueType};

/// Asserts that the condition renders as this text, which parses back.
#[track_caller]
fn check(condition: &Condition, expected: &str) {
    let mut renderer = Renderer::new();
    let text = renderer.condition(condition);
    assert_eq!(text, expected);
    let mut parser = renderer.parser();
    assert_eq!(
        parser.condition(&text).as_ref(),
        Ok(condition),
        "text={text}"
    );
    assert_eq!(parser.finish(), Ok(()), "text={text}");
}

#[test]
fn conditions_render_and_parse_back() {
    let (a, b) = (|| path("a"), || path("b"));
    for (condition, text) in [
        (Condition::eq(a(), 1), "#n0 = :v0"),
        (Condition::ne(1, a()), ":v0 <> #n0"),
        (Condition::lt(a(), b()), "#n0 < #n1"),
        (Condition::le(a(), Operand::Size(b())), "#n0 <= size(#n1)"),
        (Condition::gt(path("a.b[1].a"), 1), "#n0.#n1[1].#n0 > :v0"),
        (Condition::ge(Path::from("a.b"), 1), "#n0 >= :v0"),
        (Condition::between(a(), 1, b()), "#n0 BETWEEN :v0 AND #n1"),
        (Condition::is_in(a(), [1, 1]), "#n0 IN (:v0, :v1)"),
        (Condition::attribute_exists("a"), "attribute_exists(#n0)"),
        (
            Condition::attribute_not_exists("a"),
            "attribute_not_exists(#n0)",
        ),
        (
            Condition::attribute_type("a", ValueType::Bool),
            "attribute_type(#n0, :v0)",
        ),
        (Condition::begins_with(a(), "x"), "begins_with(#n0, :v0)"),
        (Condition::contains("x", a()), "contains(:v0, #n0)"),
    ] {
        check(&condition, text);
    }
}

#[test]
fn parentheses_are_rendered_only_where_needed() {
    let leaf = |name: &str| Condition::attribute_exists(name);
    let (a, b, c) = (|| leaf("a"), || leaf("b"), || leaf("c"));
    for (condition, expected) in [
        (a().and(b()).and(c()), "{a} AND {b} AND {c}"),
        (a().and(b().and(c())), "{a} AND ({b} AND {c})"),
        (a().or(b()).or(c()), "{a} OR {b} OR {c}"),
        (a().or(b().or(c())), "{a} OR ({b} OR {c})"),
        (a().and(b()).or(c()), "{a} AND {b} OR {c}"),
        (a().or(b().and(c())), "{a} OR {b} AND {c}"),
        (a().or(b()).and(c()), "({a} OR {b}) AND {c}"),
        (a().and(b().or(c())), "{a} AND ({b} OR {c})"),
        (a().not(), "NOT {a}"),
        (a().not().not(), "NOT (NOT {a})"),
        (a().not().and(b()), "NOT {a} AND {b}"),
        (a().and(b().not()), "{a} AND NOT {b}"),
        (a().and(b()).not().or(c()), "NOT ({a} AND {b}) OR {c}"),
        (a().or(b()).not(), "NOT ({a} OR {b})"),
        (
            Condition::between(path("a"), 1, 1).and(b()),
            "#n0 BETWEEN :v0 AND :v1 AND {b}",
        ),
    ] {
        let mut text = expected.to_owned();
        for (n, mark) in ["{a}", "{b}", "{c}"].iter().enumerate() {
            text = text.replace(mark, &format!("attribute_exists(#n{n})"));
        }
        check(&condition, &text);
    }
}

#[test]
fn updates_render_and_parse_back() {
    let b = || SetOperand::from(path("b"));
    for (update, expected) in [
        (Update::new(), ""),
        (Update::new().set("a", 1), "SET #n0 = :v0"),
        (
            Update::new().set("a", b()).set("c", 1),
            "SET #n0 = #n1, #n2 = :v0",
        ),
        (
            Update::new().set_sum("a", path("a"), 1),
            "SET #n0 = #n0 + :v0",
        ),
        (
            Update::new().set_difference("a", 1, b()),
            "SET #n0 = :v0 - #n1",
        ),
        (
            Update::new().set("a", SetOperand::if_not_exists("b", path("c"))),
            "SET #n0 = if_not_exists(#n1, #n2)",
        ),
        (
            Update::new().set(
                path("a.b"),
                SetOperand::list_append(SetOperand::if_not_exists("b", list([])), b()),
            ),
            "SET #n0.#n1 = list_append(if_not_exists(#n1, :v0), #n1)",
        ),
        (
            Update::new().remove("a").remove(path("b[0]")),
            "REMOVE #n0, #n1[0]",
        ),
        (
            Update::new()
                .delete("a", strings(["x"]))
                .add("b", 1)
                .remove("c")
                .set("d", 2),
            "SET #n0 = :v0 REMOVE #n1 ADD #n2 :v1 DELETE #n3 :v2",
        ),
    ] {
        let mut renderer = Renderer::new();
        let text = renderer.update(&update);
        assert_eq!(text, expected);
        if !update.is_empty() {
            assert_eq!(renderer.parser().update(&text), Ok(update));
        }
    }
}

#[test]
fn key_conditions_and_projections_render_and_parse_back() {
    for (op, text) in [
        (KeyOp::Eq(1.into()), "#n1 = :v1"),
        (KeyOp::Lt(1.into()), "#n1 < :v1"),
        (KeyOp::Le(1.into()), "#n1 <= :v1"),
        (KeyOp::Gt(1.into()), "#n1 > :v1"),
        (KeyOp::Ge(1.into()), "#n1 >= :v1"),
        (
            KeyOp::Between(1.into(), 2.into()),
            "#n1 BETWEEN :v1 AND :v2",
        ),
        (KeyOp::BeginsWith("x".into()), "begins_with(#n1, :v1)"),
    ] {
        let condition = KeyCondition::partition("p", "v").and("s", op);
        let mut renderer = Renderer::new();
        let rendered = renderer.key_condition(&condition);
        assert_eq!(rendered, format!("#n0 = :v0 AND {text}"));
        assert_eq!(renderer.parser().key_condition(&rendered), Ok(condition));
    }
    let paths = Paths(vec![path("a"), path("b[3].c"), path("b[4].a")]);
    let mut renderer = Renderer::new();
    let text = renderer.projection(&paths);
    assert_eq!(text, "#n0, #n1[3].#n2, #n1[4].#n0");
    assert_eq!(renderer.parser().projection(&text), Ok(paths));
}

#[test]
fn expressions_of_one_request_share_names() {
    let mut renderer = Renderer::new();
    let key = renderer.key_condition(&KeyCondition::partition("name", "x"));
    let filter = renderer.condition(&Condition::eq(path("name"), path("other")));
    let projection = renderer.projection(&Paths(vec![path("other"), path("name")]));
    assert_eq!((key.as_str(), filter.as_str(), projection.as_str()), {
        ("#n0 = :v0", "#n0 = #n1", "#n1, #n0")
    });
    let mut parser = renderer.parser();
    parser.key_condition(&key).unwrap();
    parser.filter(&filter).unwrap();
    parser.projection(&projection).unwrap();
    assert_eq!(parser.finish(), Ok(()));
    let (names, values) = renderer.into_placeholders();
    assert_eq!(
        names.into_values().collect::<Vec<_>>(),
        [Name::from("name"), "other".into()]
    );
    assert_eq!(values.into_values().collect::<Vec<_>>(), [Value::from("x")]);
}

#[test]
fn very_deep_tree_is_rendered_without_recursion() {
    let leaf = || Condition::attribute_exists("a");
    let tree = (0..100_000).fold(leaf(), |tree, _| leaf().and(tree.not()));
    let text = Renderer::new().condition(&tree);
    assert!(text.starts_with("attribute_exists(#n0) AND NOT (attribute_exists(#n0) AND NOT ("));
    let operand = (0..100_000).fold(SetOperand::from(1), |operand, _| {
        SetOperand::if_not_exists("b", operand)
    });
    let text = Renderer::new().update(&Update::new().set("a", operand));
    assert!(text.ends_with(&")".repeat(100_000)));
}

#[test]
fn random_trees_round_trip_through_text() {
    let mut random = Random::new(31);
    let (mut conditions, mut updates) = (0, 0);
    for _ in 0..5_000 {
        let condition = random.condition(4);
        if condition.check().is_ok() {
            conditions += 1;
            let mut renderer = Renderer::new();
            let text = renderer.condition(&condition);
            let mut parser = renderer.parser();
            assert_eq!(parser.condition(&text), Ok(condition), "text={text}");
            assert_eq!(parser.finish(), Ok(()), "text={text}");
        }
        let update = random.update();
        if update.check().is_ok() && !update.is_empty() {
            updates += 1;
            let mut renderer = Renderer::new();
            let text = renderer.update(&update);
            let mut parser = renderer.parser();
            assert_eq!(parser.update(&text), Ok(update), "text={text}");
            assert_eq!(parser.finish(), Ok(()), "text={text}");
        }
    }
    assert!(
        conditions > 500 && updates > 700,
        "conditions={conditions} updates={updates}"
    );
}
