//! `floe table`, `floe item`, `floe query`, `floe scan` and `floe changes tail`, on a directory and on a server.

use serde_json::json;

use crate::support::Store;

const ADA: &str = r#"{"customer":"ada","placed":1}"#;

#[test]
fn tables_are_created_listed_described_and_deleted() {
    for store in Store::both() {
        let store = store.with_orders();
        assert_eq!(
            store.prints(&["table", "list"]),
            "table   key                       items  size   indexes  stream\n\
             orders  customer (S), placed (N)      3  120 B        1\n"
        );
        assert_eq!(store.prints(&["table", "list", "--names"]), "orders\n");
        assert_eq!(
            store.json(&["table", "list"]),
            [
                json!({"table": "orders", "key": ["customer", "placed"], "items": 3, "bytes": 120, "indexes": ["by_product"]})
            ]
        );
        let described = store.prints(&["table", "describe", "orders"]);
        let begins =
            "table    orders\nstatus   active\nkey      customer (S), placed (N)\nitems    3\n";
        assert!(described.starts_with(begins), "{described}");
        let index = "index    by_product: global, by product (S), quantity (N), all attributes, active, 3 items\n";
        assert!(described.contains(index), "{described}");
        let described = store.json(&["table", "describe", "orders"]);
        assert_eq!(described[0]["KeySchema"][1]["AttributeName"], "placed");

        store
            .run(&["table", "delete", "orders"])
            .assert_failure(2, &["nothing was deleted", "--yes"]);
        assert_eq!(store.prints(&["table", "list", "--names"]), "orders\n");
        assert_eq!(
            store.prints(&["table", "delete", "orders", "--yes"]),
            "deleted: table=orders items=3\n"
        );
        assert_eq!(store.prints(&["table", "list", "--names"]), "");
    }
}

#[test]
fn created_table_has_the_requested_options() {
    for store in Store::both() {
        let options = [
            "--key",
            "id:S",
            "--sort",
            "at:N",
            "--local-index",
            "by_size=size:N",
            "--stream",
            "keys-only",
            "--expires",
            "until",
        ];
        let created = store.json(&[&["table", "create", "things"][..], &options].concat());
        assert_eq!(
            created[0]["StreamSpecification"]["StreamViewType"],
            "KEYS_ONLY"
        );
        assert_eq!(
            created[0]["LocalSecondaryIndexes"][0]["IndexName"],
            "by_size"
        );
        let described = store.prints(&["table", "describe", "things"]);
        assert!(described.contains("expires  until\n"), "{described}");
        let again = store.run(&["table", "create", "things", "--key", "id:S"]);
        again.assert_failure(1, &["already exists"]);
    }
}

#[test]
fn items_are_put_read_updated_and_deleted() {
    for store in Store::both() {
        let store = store.with_orders();
        let ada = ["--key", ADA];
        assert_eq!(
            store.prints(&[&["item", "get", "orders"][..], &ada].concat()),
            "attribute  type  value\n\
             customer   S     ada\n\
             placed     N     1\n\
             product    S     sled\n\
             quantity   N     2\n"
        );
        assert_eq!(
            store.json(&[
                "item",
                "get",
                "orders",
                "--key",
                r#"{"customer":{"S":"ada"},"placed":{"N":"1"}}"#,
                "--projection",
                "product"
            ]),
            [json!({"product": "sled"})]
        );
        let more = [
            "--update",
            "SET quantity = quantity + :n",
            "--values",
            r#"{":n":1}"#,
        ];
        let updated = store.json(
            &[
                &["item", "update", "orders"][..],
                &ada,
                &more,
                &["--return", "updated-new"],
            ]
            .concat(),
        );
        assert_eq!(
            updated,
            [json!({"done": "updated", "item": {"quantity": 3}})]
        );
        let condition = [
            "--condition",
            "#q = :q",
            "--names",
            r##"{"#q":"quantity"}"##,
            "--values",
            r#"{":q":9}"#,
        ];
        let rejected = store.run(&[&["item", "delete", "orders"][..], &ada, &condition].concat());
        rejected.assert_failure(3, &["the condition is false"]);
        let old = store.json(&[&["item", "delete", "orders", "--old"][..], &ada].concat());
        assert_eq!(old[0]["item"]["quantity"], json!(3));
        let again = store.run(&[&["item", "delete", "orders"][..], &ada].concat());
        again.assert_failure(
            3,
            &["there is no such item, nothing was deleted: table=orders"],
        );
        let gone = store.run(&[&["item", "get", "orders"][..], &ada].concat());
        gone.assert_failure(3, &["there is no such item: table=orders"]);
        let sets = r#"{"customer":{"S":"bo"},"placed":{"N":"1"},"tags":{"SS":["a","b"]}}"#;
        assert_eq!(
            store.prints(&["item", "put", "orders", "--item", sets]),
            "put\n"
        );
    }
}

#[test]
fn unknown_index_is_a_negative_result() {
    for store in Store::both() {
        let store = store.with_orders();
        let query = ["query", "orders", "--key-condition", "product = :p"];
        let values = ["--values", r#"{":p":"sled"}"#];
        for words in [&["scan", "orders"][..], &[&query[..], &values].concat()] {
            let output = store.run(&[words, &["--index", "none"]].concat());
            let message = "there is no such index: table=orders index=none known=by_product";
            output.assert_failure(3, &[message]);
        }
    }
}

#[test]
fn pages_are_resumed_at_their_cursors() {
    for store in Store::both() {
        let store = store.with_orders();
        let query = [
            "query",
            "orders",
            "--key-condition",
            "customer = :c",
            "--values",
        ];
        let of_ada = [&query[..], &[r#"{":c":"ada"}"#]].concat();
        assert_eq!(
            store.prints(&[&of_ada[..], &["--descending"]].concat()),
            "customer  placed  product  quantity\n\
             ada           10  sled            1\n\
             ada            2  rope           10\n\
             ada            1  sled            2\n"
        );
        assert_eq!(store.prints(&[&of_ada[..], &["--count"]].concat()), "3\n");

        // A filter, a projection without the key, and pages of one item.
        let sleds = [
            &query[..],
            &[
                r#"{":c":"ada",":p":"sled"}"#,
                "--filter",
                "product = :p",
                "--projection",
                "quantity",
                "--limit",
                "1",
            ],
        ]
        .concat();
        let first = store.json(&sleds);
        assert_eq!(first[0]["items"], json!([{"quantity": 2}]));
        let cursor = first[0]["cursor"].as_str().unwrap().to_owned();
        let second = store.json(&[&sleds[..], &["--cursor", &cursor]].concat());
        assert_eq!(second[0]["items"], json!([{"quantity": 1}]));

        let by_index = [
            "query",
            "orders",
            "--index",
            "by_product",
            "--key-condition",
            "product = :p",
            "--values",
            r#"{":p":"sled"}"#,
            "--limit",
            "1",
        ];
        let first = store.json(&by_index);
        assert_eq!(first[0]["items"][0]["quantity"], json!(1));
        let cursor = first[0]["cursor"].as_str().unwrap().to_owned();
        let second = store.json(&[&by_index[..], &["--cursor", &cursor]].concat());
        assert_eq!(second[0]["items"][0]["quantity"], json!(2));

        let scanned = store
            .run(&["scan", "orders", "--limit", "2"])
            .assert_success();
        assert_eq!(scanned.stdout.lines().count(), 3, "{scanned:?}");
        assert!(
            scanned
                .stderr
                .contains("items=2 read=2; resume with --cursor "),
            "{scanned:?}"
        );
        assert_eq!(store.prints(&["scan", "orders", "--all", "--count"]), "3\n");
        let all = store.json(&["scan", "orders", "--all"]);
        assert_eq!(
            (&all[0]["count"], &all[0]["cursor"]),
            (&json!(3), &json!(null))
        );
    }
}

#[test]
fn changes_are_printed_in_order() {
    for store in Store::both() {
        let create = ["table", "create", "things", "--key", "id:S"];
        store.prints(&[&create[..], &["--stream", "new-and-old-images"]].concat());
        for item in [r#"{"id":"a","n":1}"#, r#"{"id":"a","n":2}"#] {
            store.prints(&["item", "put", "things", "--item", item]);
        }
        store.prints(&["item", "delete", "things", "--key", r#"{"id":"a"}"#]);
        let tail = ["changes", "tail", "things", "--once", "--from-start"];
        let printed = store.json(&tail);
        let kinds: Vec<_> = printed.iter().map(|change| &change["kind"]).collect();
        assert_eq!(kinds, ["INSERT", "MODIFY", "REMOVE"]);
        assert_eq!(printed[1]["old"]["n"], json!(1));
        assert_eq!(printed[1]["new"]["n"], json!(2));
        let printed = store.prints(&tail);
        let second = printed.lines().nth(1).unwrap();
        assert!(
            second.ends_with("  MODIFY  {\"id\":\"a\"}  {\"n\":2}"),
            "{printed}"
        );
        assert_eq!(store.prints(&["changes", "tail", "things", "--once"]), "");
        store.prints(&["table", "create", "still", "--key", "id:S"]);
        let output = store.run(&["changes", "tail", "still", "--once"]);
        output.assert_failure(
            1,
            &["the table has no change stream: table=still", "--stream"],
        );
    }
}
