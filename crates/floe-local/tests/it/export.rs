//! Export and import of tables as lines of JSON.

use std::io::{self, Write};

use floe_local::{ExportOptions, ImportOptions};
use floe_store::op::UpdateTable;
use floe_store::table::{KeyKind, Projection, StreamView};
use floe_store::{Engine, Error, Item, Number, Set, TableDef, Text, Value};

use crate::common::{TestStore, memory, open};

fn orders() -> TableDef {
    TableDef::builder("Orders", "customer", KeyKind::S)
        .sort_key("placed", KeyKind::N)
        .local_index("by_total", "total", KeyKind::N, Projection::KeysOnly)
        .global_index(
            "by_product",
            [("product", KeyKind::B)],
            [("placed", KeyKind::N)],
            Projection::Include(vec!["total".into()]),
        )
        .stream(StreamView::NewImage)
        .ttl("until")
        .tag("team", "a")
        .build()
        .unwrap()
}

fn plain(name: &str) -> TableDef {
    TableDef::builder(name, "id", KeyKind::S).build().unwrap()
}

fn number(text: &str) -> Number {
    text.parse().unwrap()
}

/// An item with every type of value, including edge cases.
fn rich(n: i32) -> Item {
    Item::new()
        .with(
            "customer",
            format!("c{n} \"quoted\" \\ \n\u{0}\u{7f}é日\u{1f600}\u{2028}"),
        )
        .with(
            "placed",
            Value::N(number(&format!(
                "{n}.00000000000000000000000000000000000{n}"
            ))),
        )
        .with("s", "")
        .with(
            "n",
            Value::N(number("-12345678901234567890123456789012345678")),
        )
        .with("tiny", Value::N(number("1E-130")))
        .with(
            "huge",
            Value::N(number("9.9999999999999999999999999999999999999E125")),
        )
        .with("b", (0..=255).collect::<Vec<u8>>())
        .with("b_empty", Vec::<u8>::new())
        .with("yes", true)
        .with("no", false)
        .with("null", Value::Null)
        .with(
            "map",
            Item::new()
                .with("inner", Item::new())
                .with(".", Value::L(vec![])),
        )
        .with(
            "list",
            vec![
                Value::from(1),
                Value::from("a"),
                Value::L(vec![Value::Null]),
            ],
        )
        .with("ss", Set::new([Text::from("b"), Text::from("a")]).unwrap())
        .with(
            "ns",
            Set::new([number("10"), number("9"), number("-1.5")]).unwrap(),
        )
        .with("bs", Set::new([vec![0u8], vec![]]).unwrap())
        .with("product", vec![n as u8])
        .with("total", n)
}

fn export(store: &TestStore, table: &str) -> String {
    let mut text = Vec::new();
    store.engine.export_table(table, &mut text).unwrap();
    String::from_utf8(text).unwrap()
}

fn import(store: &TestStore, text: &str) -> Result<u64, Error> {
    store
        .engine
        .import(text.as_bytes())
        .map(|report| report.items)
}

fn import_into(store: &TestStore, table: &str, text: &str) -> Result<u64, Error> {
    let options = ImportOptions::new().table_name(table);
    store
        .engine
        .import_with(text.as_bytes(), options, |_| {})
        .map(|report| report.items)
}

#[tokio::test]
async fn table_with_all_ten_types_round_trips() {
    let source = memory();
    source.create(orders()).await;
    for n in 1..=9 {
        source.put("Orders", rich(n)).await;
    }
    let text = export(&source, "Orders");
    assert_eq!(text.lines().count(), 11);
    let dir = tempfile::tempdir().unwrap();
    let target = open(dir.path());
    assert_eq!(import(&target, &text), Ok(9));
    assert_eq!(target.items("Orders").await, source.items("Orders").await);
    for index in ["by_total", "by_product"] {
        assert_eq!(
            target.entries("Orders", index).await,
            source.entries("Orders", index).await
        );
    }
    let definition = |description: floe_store::table::TableDescription| description.definition;
    let made = target
        .engine
        .describe_table("Orders".to_owned())
        .await
        .map(definition)
        .unwrap();
    assert_eq!(made, orders());
    assert_eq!(export(&target, "Orders"), text);
}

#[tokio::test]
async fn item_lines_have_dynamodbs_export_format() {
    let store = memory();
    store.create(plain("Books")).await;
    store
        .put("Books", Item::new().with("id", "a").with("n", 1))
        .await;
    let text = export(&store, "Books");
    let lines: Vec<&str> = text.lines().collect();
    assert!(
        lines[0].starts_with(r#"{"FloeExport":1,"Table":{"#),
        "{text}"
    );
    assert_eq!(
        lines[1..],
        [
            r#"{"Item":{"id":{"S":"a"},"n":{"N":"1"}}}"#,
            r#"{"End":{"ItemCount":1}}"#
        ]
    );
    let mut items = Vec::new();
    let options = ExportOptions::new().items_only();
    let report = store
        .engine
        .export_table_with("Books", &mut items, options, |_| {})
        .unwrap();
    assert_eq!(String::from_utf8(items).unwrap(), format!("{}\n", lines[1]));
    assert_eq!(
        (report.items, report.items_expected, report.bytes),
        (1, 1, lines[1].len() as u64 + 1)
    );
    let error = store
        .engine
        .export_table("Unknown", Vec::new())
        .unwrap_err();
    assert!(matches!(error, Error::ResourceNotFound(_)), "{error:?}");
}

#[tokio::test]
async fn export_is_a_snapshot() {
    let store = memory();
    store.create(plain("Books")).await;
    for n in 0..2000 {
        store
            .put("Books", Item::new().with("id", n.to_string()).with("v", 1))
            .await;
    }
    // A writer that changes the table during the export.
    struct ChangingWriter<'a>(&'a TestStore, Vec<u8>);
    impl Write for ChangingWriter<'_> {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.1.len() < 5000 {
                let text = format!(
                    r#"{{"Item":{{"id":{{"S":"{}"}},"v":{{"N":"2"}}}}}}"#,
                    self.1.len()
                );
                import_into(self.0, "Books", &text).unwrap();
            }
            self.1.extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut reported = Vec::new();
    let mut out = ChangingWriter(&store, Vec::new());
    let options = ExportOptions::new();
    let report = store
        .engine
        .export_table_with("Books", &mut out, options, |r| reported.push(r.items))
        .unwrap();
    assert_eq!((report.items, reported), (2000, vec![1000, 2000, 2000]));
    assert!(
        !String::from_utf8(out.1)
            .unwrap()
            .contains(r#""v":{"N":"2"}"#)
    );
    assert!(store.items("Books").await.len() > 2000);
}

#[tokio::test]
async fn repeated_import_changes_nothing() {
    let source = memory();
    source.create(orders()).await;
    for n in 1..=5 {
        source.put("Orders", rich(n)).await;
    }
    let text = export(&source, "Orders");
    let target = memory();
    let mut reported = Vec::new();
    let report = target
        .engine
        .import_with(text.as_bytes(), ImportOptions::new(), |r| {
            reported.push(r.lines);
        })
        .unwrap();
    assert_eq!(report.tables_created, ["Orders"]);
    assert_eq!(
        (report.lines, report.items, report.bytes),
        (7, 5, text.len() as u64)
    );
    assert_eq!(reported, [7]);
    let records = target.all_records(&target.stream_arn("Orders").await).await;
    assert_eq!(records.len(), 5);
    let report = target.engine.import(text.as_bytes()).unwrap();
    assert_eq!((report.items, report.tables_created.len()), (5, 0));
    assert_eq!(
        target.all_records(&target.stream_arn("Orders").await).await,
        records
    );
    assert_eq!(export(&target, "Orders"), text);
}

#[tokio::test]
async fn interrupted_import_can_be_repeated() {
    let source = memory();
    source.create(plain("Books")).await;
    for n in 0..1500 {
        source
            .put("Books", Item::new().with("id", n.to_string()))
            .await;
    }
    let text = export(&source, "Books");
    let target = memory();
    let half = &text[..text.len() / 2];
    let error = import(&target, half).unwrap_err();
    assert!(
        error.to_string().starts_with("the line is not JSON: "),
        "{error}"
    );
    assert_eq!(import(&target, &text), Ok(1500));
    assert_eq!(export(&target, "Books"), text);
}

#[tokio::test]
async fn text_truncated_between_lines_is_rejected() {
    let source = memory();
    source.create(plain("Books")).await;
    for n in 0..3 {
        source
            .put("Books", Item::new().with("id", n.to_string()))
            .await;
    }
    let text = export(&source, "Books");
    let mut lines: Vec<&str> = text.lines().collect();
    let end = lines.pop().unwrap();
    let error = import(&memory(), &lines.join("\n"))
        .unwrap_err()
        .to_string();
    assert_eq!(
        error,
        "the input is truncated, the last line of the table is missing: table=Books: line=4"
    );
    lines.pop();
    lines.push(end);
    let error = import(&memory(), &lines.join("\n"))
        .unwrap_err()
        .to_string();
    assert_eq!(
        error,
        "wrong number of items: table=Books expected=3 actual=2: line=4"
    );
}

#[tokio::test]
async fn several_tables_are_imported_from_concatenated_texts() {
    let source = memory();
    for name in ["One", "Two"] {
        source.create(plain(name)).await;
        source.put(name, Item::new().with("id", name)).await;
    }
    let text = export(&source, "One") + "\n" + &export(&source, "Two");
    let target = memory();
    let report = target.engine.import(text.as_bytes()).unwrap();
    assert_eq!(
        (report.items, report.tables_created),
        (2, vec!["One".to_owned(), "Two".to_owned()])
    );
    assert_eq!(target.items("Two").await, [Item::new().with("id", "Two")]);
    let error = import_into(&memory(), "Both", &text)
        .unwrap_err()
        .to_string();
    assert_eq!(
        error,
        "the input contains several tables, which cannot be imported into one: table=Both: line=5"
    );
}

#[tokio::test]
async fn table_can_be_imported_under_another_name() {
    let source = memory();
    source.create(plain("Books")).await;
    source.put("Books", Item::new().with("id", "a")).await;
    let text = export(&source, "Books");
    assert_eq!(import_into(&source, "Copies", &text), Ok(1));
    assert_eq!(source.items("Copies").await, source.items("Books").await);
}

#[tokio::test]
async fn dynamodbs_own_export_is_imported_into_an_existing_table() {
    let store = memory();
    let text = r#"{"Item":{"id":{"S":"a"},"Authors":{"SS":["Author1","Author2"]},"Price":{"N":"20"}}}
{"Item":{"id":{"S":"b"},"InPublication":{"BOOL":true},"Cover":{"B":"AQID"},"None":{"NULL":true}}}"#;
    let error = import(&store, text).unwrap_err().to_string();
    assert_eq!(
        error,
        "the item belongs to no table: name a table, or start with a Table line: line=1"
    );
    let error = import_into(&store, "Books", text).unwrap_err();
    assert!(matches!(error, Error::ResourceNotFound(_)), "{error:?}");
    store.create(plain("Books")).await;
    assert_eq!(import_into(&store, "Books", text), Ok(2));
    let b = store
        .get("Books", Item::new().with("id", "b"))
        .await
        .unwrap();
    assert_eq!(b.get("Cover"), Some(&Value::from(vec![1u8, 2, 3])));
    // After the output of describe-table, the table need not exist.
    let described = r#"{"Table":{"TableName":"More","KeySchema":[{"AttributeName":"id","KeyType":"HASH"}],"AttributeDefinitions":[{"AttributeName":"id","AttributeType":"S"}],"BillingModeSummary":{"BillingMode":"PAY_PER_REQUEST"},"ItemCount":2}}"#;
    assert_eq!(import(&store, &format!("{described}\n{text}")), Ok(2));
    assert_eq!(store.items("More").await, store.items("Books").await);
}

#[tokio::test]
async fn existing_table_with_another_key_is_rejected() {
    let source = memory();
    source.create(plain("Books")).await;
    let text = export(&source, "Books");
    let target = memory();
    target
        .create(
            TableDef::builder("Books", "id", KeyKind::N)
                .build()
                .unwrap(),
        )
        .await;
    let error = import(&target, &text).unwrap_err().to_string();
    assert_eq!(
        error,
        "the table exists with a different key: table=Books: line=1"
    );
    // Different indexes are accepted.
    let target = memory();
    let more = TableDef::builder("Books", "id", KeyKind::S)
        .global_index(
            "by_x",
            [("x", KeyKind::S)],
            [("id", KeyKind::S)],
            Projection::All,
        )
        .build()
        .unwrap();
    target.create(more).await;
    assert_eq!(import(&target, &text), Ok(0));
}

#[tokio::test]
async fn error_contains_the_line_number() {
    let deep = format!(
        r#"{{"Item":{{"id":{{"S":"a"}},"x":{}{}}}}}"#,
        r#"{"L":["#.repeat(40),
        "]}".repeat(40)
    );
    let long = format!(
        r#"{{"Item":{{"id":{{"S":"a"}},"x":{{"S":"{}"}}}}}}"#,
        "x".repeat(400 << 10)
    );
    let huge = " ".repeat((16 << 20) + 1);
    let cases = [
        ("{", "the line is not JSON: "),
        ("\u{feff}{}", "the line is not JSON: "),
        ("[]", "expected an object, found a list: line=3"),
        ("{}", "the line has neither Item nor Table nor End: line=3"),
        (
            r#"{"Item":1}"#,
            "expected an object of attributes, found a number at=Item: line=3",
        ),
        (
            r#"{"Item":{"id":{"S":"a"},"x":{"NS":[]}}}"#,
            "One or more parameter values were invalid: An number set  may not be empty at=Item.x.NS: line=3",
        ),
        (
            r#"{"Item":{"id":{"N":"1"}}}"#,
            "One or more parameter values were invalid: Type mismatch for key id expected: S actual: N: line=3",
        ),
        (
            r#"{"Item":{"x":{"S":"a"}}}"#,
            "One or more parameter values were invalid: Missing the key id in the item: line=3",
        ),
        (&deep, "Nesting Levels have exceeded supported limits: "),
        (
            &long,
            "Item size has exceeded the maximum allowed size: line=3",
        ),
        (&huge, "the line is too long: bytes_max=16777216: line=3"),
        (r#"{"Table":{}}"#, "a field is missing at=Table."),
        (
            r#"{"FloeExport":2,"Table":{}}"#,
            "the input was written by a newer version of floe: line=3",
        ),
        (
            r#"{"End":{"ItemCount":7}}"#,
            "wrong number of items: table=Books expected=7 actual=1: line=3",
        ),
        (
            r#"{"End":{}}"#,
            "wrong number of items: table=Books expected=unknown actual=1: line=3",
        ),
    ];
    for (line, expected) in cases {
        let store = memory();
        store.create(plain("Books")).await;
        let text =
            format!("{{\"Item\":{{\"id\":{{\"S\":\"first\"}}}}}}\n\n{line}\n{{\"Item\":{{}}}}");
        let error = import_into(&store, "Books", &text).unwrap_err();
        let message = error.to_string();
        assert!(matches!(error, Error::Validation(_)), "{message}");
        assert!(
            message.starts_with(expected) && message.ends_with("line=3"),
            "{message}\n{expected}"
        );
    }
}

#[tokio::test]
async fn largest_items_round_trip() {
    let store = memory();
    store.create(plain("Books")).await;
    let of = |id: &str, value: Value| {
        let item = Item::new().with("id", id).with("x", value);
        (id.to_owned(), item)
    };
    let room = (400 << 10) - 10;
    for (id, item) in [
        of("zeros", Value::from("\0".repeat(room))),
        of("bytes", Value::B(vec![255; room])),
        of("empty", Value::L(vec![Value::from(""); room - 5])),
    ] {
        store.put("Books", item.clone()).await;
        let text = export(&store, "Books");
        let target = memory();
        import(&target, &text).unwrap();
        assert_eq!(
            target.get("Books", Item::new().with("id", &*id)).await,
            Some(item)
        );
    }
}

#[tokio::test]
async fn errors_of_readers_and_writers_are_reported() {
    struct Broken;
    impl Write for Broken {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::Error::other("the disk is full"))
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    impl io::Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("the cable is cut"))
        }
    }
    let store = memory();
    store.create(plain("Books")).await;
    let error = store.engine.export_table("Books", Broken).unwrap_err();
    assert!(error.to_string().ends_with("the disk is full"), "{error}");
    let error = store.engine.import(io::BufReader::new(Broken)).unwrap_err();
    assert!(error.to_string().ends_with("the cable is cut"), "{error}");
}

#[tokio::test]
async fn disabled_stream_stays_disabled_after_an_import() {
    let source = memory();
    source.create(orders()).await;
    let off = UpdateTable {
        stream: Some(None),
        ..UpdateTable::new("Orders")
    };
    source.engine.update_table(off).await.unwrap();
    let target = memory();
    import(&target, &export(&source, "Orders")).unwrap();
    let description = target
        .engine
        .describe_table("Orders".to_owned())
        .await
        .unwrap();
    assert_eq!(
        (description.definition.stream, description.latest_stream),
        (None, None)
    );
}
