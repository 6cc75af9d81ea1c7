//! Random texts: each is parsed or rejected, and accepted trees pass the check and render back.

use super::parse;
use crate::error::{Error, Result};
use crate::expr::parse::Parser;
use crate::expr::render::Renderer;
use crate::expr::tests::Random;

const WORDS: &[&str] = &[
    "a",
    "b",
    "c.a",
    "name",
    "#a",
    "#b",
    "#x",
    ":v",
    ":w",
    ":one",
    ":L",
    ":SS",
    ":u",
    "=",
    "<>",
    "<",
    "<=",
    ">",
    ">=",
    "+",
    "-",
    "(",
    ")",
    "(",
    ")",
    "[",
    "]",
    "[0]",
    ".",
    ",",
    "0",
    "12",
    "AND",
    "OR",
    "NOT",
    "BETWEEN",
    "IN",
    "IN (",
    "SET",
    "REMOVE",
    "ADD",
    "DELETE",
    "size(",
    "contains(",
    "begins_with(",
    "attribute_exists(",
    "attribute_type(",
    "if_not_exists(",
    "list_append(",
    "f(",
    "!",
    "_",
    "ü",
    "\"",
    " ",
    "\n",
    "a = :v",
    "b = :w",
];

fn text(random: &mut Random) -> String {
    let words = random.below(14);
    let joint = random.pick(&["", " "]);
    let words: Vec<_> = (0..words).map(|_| random.pick(WORDS)).collect();
    words.join(joint)
}

/// Returns the tree, or `None` for a validation error.
fn accepted<T>(text: &str, result: Result<T>) -> Option<T> {
    match result {
        Ok(tree) => Some(tree),
        Err(Error::Validation(message)) if !message.contains("postfix") => None,
        Err(other) => panic!("not an error of DynamoDB: text={text} error={other}"),
    }
}

#[test]
fn random_words_are_parsed_or_rejected() {
    let mut random = Random::new(7);
    let mut conditions = 0;
    for _ in 0..10_000 {
        let text = text(&mut random);
        if let Some(condition) = accepted(&text, parse(&text, Parser::condition)) {
            conditions += 1;
            assert_eq!(condition.check(), Ok(()), "text={text}");
            let mut renderer = Renderer::new();
            let rendered = renderer.condition(&condition);
            let again = renderer.parser().filter(&rendered);
            assert_eq!(again, Ok(condition), "text={text}");
        }
        if let Some(update) = accepted(&text, parse(&text, Parser::update)) {
            assert_eq!(update.check(), Ok(()), "text={text}");
        }
        if let Some(paths) = accepted(&text, parse(&text, Parser::projection)) {
            assert_eq!(paths.check(), Ok(()), "text={text}");
        }
        if let Some(key) = accepted(&text, parse(&text, Parser::key_condition)) {
            assert_eq!(key.check(), Ok(()), "text={text}");
        }
    }
    assert!(
        conditions > 30,
        "too few conditions parsed: count={conditions}"
    );
}

#[test]
fn random_sections_are_parsed_or_rejected() {
    let mut random = Random::new(11);
    let mut updates = 0;
    for _ in 0..10_000 {
        let actions: &[&str] = &[
            "SET a = :v",
            "SET b = a + :one",
            "SET b = list_append(c, :L)",
            ", c = if_not_exists(c, :v)",
            ", a.b = b",
            ", b - :one",
            "REMOVE c",
            "REMOVE a",
            ", c[0]",
            "ADD a :one",
            ", b :SS",
            "DELETE c :SS",
            "(",
            ")",
            ",",
            ":v",
        ];
        let actions: Vec<_> = (0..random.below(5)).map(|_| random.pick(actions)).collect();
        let text = actions.join(" ");
        if let Some(update) = accepted(&text, parse(&text, Parser::update)) {
            updates += 1;
            assert_eq!(update.check(), Ok(()), "text={text}");
        }
    }
    assert!(updates > 200, "too few updates parsed: count={updates}");
}

#[test]
fn random_characters_are_parsed_or_rejected() {
    let mut random = Random::new(13);
    let characters: Vec<char> = "ab#:()[].,=<>+-_ 019\n\t\u{0}ü😀\u{2028}ANDORNT"
        .chars()
        .collect();
    for _ in 0..5_000 {
        let length = random.below(20);
        let text: String = (0..length).map(|_| random.pick(&characters)).collect();
        accepted(&text, parse(&text, Parser::condition));
        accepted(&text, parse(&text, Parser::update));
        accepted(&text, parse(&text, Parser::projection));
        accepted(&text, parse(&text, Parser::key_condition));
    }
}
