//! Expressions from text: never a panic; what parses can be checked, evaluated and written as text that
//! parses to the same tree.

#![no_main]

use std::collections::BTreeMap;
use std::fmt::Debug;

use floe_store::expr::{Parser, Renderer};
use floe_store::{Item, Name, Number, Result, Set, Value};
use libfuzzer_sys::fuzz_target;

type Names = BTreeMap<String, Name>;
type Values = BTreeMap<String, Value>;

fuzz_target!(|data: &[u8]| {
    let Some((kind, text)) = data.split_first() else {
        return;
    };
    let Ok(text) = std::str::from_utf8(text) else {
        return;
    };
    let item = item();
    match kind % 4 {
        0 => check(text, |p, t| p.condition(t), Renderer::condition, |condition| {
            condition.check().expect("what parses passes the check");
            condition.evaluate(&item);
        }),
        1 => check(text, |p, t| p.update(t), Renderer::update, |update| {
            update.check().expect("what parses passes the check");
            let _applied = update.apply(&item);
        }),
        2 => check(text, |p, t| p.projection(t), Renderer::projection, |paths| {
            paths.check().expect("what parses passes the check");
            paths.project(&item);
        }),
        _ => check(text, |p, t| p.key_condition(t), Renderer::key_condition, |_| {}),
    }
});

fn check<T: PartialEq + Debug>(
    text: &str,
    parse: impl Fn(&mut Parser<'_>, &str) -> Result<T>,
    render: fn(&mut Renderer, &T) -> String,
    exercise: impl Fn(&T),
) {
    let (names, values) = (names(), values());
    let mut parser = Parser::new(Some(&names), Some(&values));
    let parsed = parse(&mut parser, text);
    let _unused = parser.finish();
    let Ok(tree) = parsed else {
        return;
    };
    exercise(&tree);
    let mut renderer = Renderer::new();
    let again = render(&mut renderer, &tree);
    let (names, values) = renderer.into_placeholders();
    // A text near the limit can be beyond it when written out with placeholders.
    if again.len() <= 4096 {
        let values = (!values.is_empty()).then_some(&values);
        let parsed = parse(&mut Parser::new(Some(&names), values), &again);
        assert_eq!(parsed.as_ref(), Ok(&tree), "{again}");
    }
}

fn names() -> Names {
    [("#a", "a"), ("#b", "select"), ("#c", "with.dot")]
        .map(|(key, name)| (key.to_owned(), Name::from(name)))
        .into()
}

fn values() -> Values {
    let set = Set::new([Number::from(1), Number::from(2)]).expect("a set");
    [
        (":s", Value::from("text")),
        (":n", Value::from(7)),
        (":l", Value::from(vec![Value::from(1)])),
        (":m", Value::from(Item::new().with("b", 1))),
        (":z", Value::from(set)),
        (":t", Value::from("S")),
    ]
    .map(|(key, value)| (key.to_owned(), value))
    .into()
}

fn item() -> Item {
    Item::new()
        .with("a", Item::new().with("b", vec![Value::from(1), Value::from("x")]))
        .with("select", 5)
        .with("with.dot", "text")
        .with("l", vec![Value::from(1), Value::from(2)])
}
