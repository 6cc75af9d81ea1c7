//! The items of both servers, and the bodies of the requests.
//!
//! Items have 13 attributes of most types, and a size of 1 KB as DynamoDB counts it. A partition has a hundred items.

use floe_store::env::SeededRandom;

pub(super) const TABLE: &str = "Customers";
/// Number of items in the table.
pub(super) const ITEMS: u64 = 10_000;
/// Number of items in a partition.
const PARTITION: u64 = 100;
/// Number of items in one request of the loader: the maximum of DynamoDB.
const LOAD: u64 = 25;
/// Number of items that a query reads.
const QUERY: u64 = 20;
/// Number of items that a batch reads.
const BATCH: u64 = 25;

/// Placeholder for a number with as many digits that no earlier request contained. A server may skip a write that
/// changes nothing, so each write contains a new value.
pub(super) const FRESH: &str = "900000009";

/// A call: the name of an operation and the body of its request.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) operation: &'static str,
    pub(super) body: String,
}

fn call(operation: &'static str, body: String) -> Call {
    Call { operation, body }
}

/// A measured operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    /// GetItem of an item.
    Get,
    /// PutItem of a whole item.
    Put,
    /// UpdateItem of two attributes under a condition.
    Update,
    /// Query of 20 items.
    Query,
    /// TransactWriteItems of a put and two updates, each under a condition.
    Transact,
    /// BatchGetItem of 25 items of different partitions.
    BatchGet,
}

impl Operation {
    /// All operations, writes first.
    pub(super) const ALL: [Self; 6] = [
        Self::Put,
        Self::Update,
        Self::Transact,
        Self::Get,
        Self::Query,
        Self::BatchGet,
    ];

    /// The name of its cases.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Put => "put",
            Self::Update => "update",
            Self::Query => "query_20",
            Self::Transact => "transact_3",
            Self::BatchGet => "batch_get_25",
        }
    }

    /// Returns a random call.
    pub(super) fn call(self, picker: &Picker) -> Call {
        match self {
            Self::Get => call("GetItem", keyed(picker.item(), "")),
            Self::Put => call(
                "PutItem",
                on_table(&format!(r#""Item":{}"#, item(picker.item(), FRESH))),
            ),
            Self::Update => call(
                "UpdateItem",
                on_table(&format!(
                    r#"{},"ReturnValues":"UPDATED_NEW""#,
                    update(picker.item())
                )),
            ),
            Self::Query => query(picker),
            Self::Transact => transact(picker),
            Self::BatchGet => batch_get(picker),
        }
    }
}

fn query(picker: &Picker) -> Call {
    let start = picker.start_of(QUERY);
    let members = format!(
        r#""KeyConditionExpression":"pk = :p AND sk >= :s","ExpressionAttributeValues":{{":p":{{"S":"{}"}},":s":{{"N":"{}"}}}},"Limit":{QUERY}"#,
        partition(start / PARTITION),
        start % PARTITION
    );
    call("Query", on_table(&members))
}

fn transact(picker: &Picker) -> Call {
    let [one, two, three] = picker.three();
    let put = on_table(&format!(
        r#""Item":{},"ConditionExpression":"attribute_exists(pk)""#,
        item(one, FRESH)
    ));
    let [two, three] = [two, three].map(|n| on_table(&update(n)));
    let body =
        format!(r#"{{"TransactItems":[{{"Put":{put}}},{{"Update":{two}}},{{"Update":{three}}}]}}"#);
    call("TransactWriteItems", body)
}

fn batch_get(picker: &Picker) -> Call {
    let first = picker.item();
    // The stride is coprime to the number of items, so that no key occurs twice.
    let keys = (0..BATCH).map(|n| key((first + n * 397) % ITEMS));
    let keys = keys.collect::<Vec<_>>().join(",");
    let body = format!(r#"{{"RequestItems":{{"{TABLE}":{{"Keys":[{keys}]}}}}}}"#);
    call("BatchGetItem", body)
}

/// The call that creates the table.
pub(super) fn create() -> Call {
    let members = r#""AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"},{"AttributeName":"sk","AttributeType":"N"}],"KeySchema":[{"AttributeName":"pk","KeyType":"HASH"},{"AttributeName":"sk","KeyType":"RANGE"}],"BillingMode":"PAY_PER_REQUEST""#;
    call("CreateTable", on_table(members))
}

/// The calls that put all items.
pub(super) fn load() -> impl Iterator<Item = Call> {
    (0..ITEMS / LOAD).map(|batch| {
        let puts = (0..LOAD).map(|n| {
            let item = item(batch * LOAD + n, "0");
            format!(r#"{{"PutRequest":{{"Item":{item}}}}}"#)
        });
        let puts = puts.collect::<Vec<_>>().join(",");
        let body = format!(r#"{{"RequestItems":{{"{TABLE}":[{puts}]}}}}"#);
        call("BatchWriteItem", body)
    })
}

/// The calls that read every item, partition by partition.
pub(super) fn sweep() -> impl Iterator<Item = Call> {
    (0..ITEMS / PARTITION).map(|n| {
        let members = format!(
            r#""KeyConditionExpression":"pk = :p","ExpressionAttributeValues":{{":p":{{"S":"{}"}}}}"#,
            partition(n)
        );
        call("Query", on_table(&members))
    })
}

/// A call that lists the tables, the cheapest request.
pub(super) fn list() -> Call {
    call("ListTables", "{}".to_owned())
}

fn on_table(members: &str) -> String {
    format!(r#"{{"TableName":"{TABLE}",{members}}}"#)
}

fn keyed(n: u64, members: &str) -> String {
    on_table(&format!(r#""Key":{}{members}"#, key(n)))
}

fn update(n: u64) -> String {
    format!(
        r##""Key":{},"UpdateExpression":"SET #status = :status, score = :score ADD visits :one","ConditionExpression":"attribute_exists(pk) AND score >= :zero","ExpressionAttributeNames":{{"#status":"status"}},"ExpressionAttributeValues":{{":status":{{"S":"changed"}},":score":{{"N":"{FRESH}"}},":one":{{"N":"1"}},":zero":{{"N":"0"}}}}"##,
        key(n)
    )
}

fn partition(n: u64) -> String {
    format!("customer-{n:08}")
}

fn key(n: u64) -> String {
    format!("{{{}}}", key_members(n))
}

fn key_members(n: u64) -> String {
    let (partition, sort) = (partition(n / PARTITION), n % PARTITION);
    format!(r#""pk":{{"S":"{partition}"}},"sk":{{"N":"{sort}"}}"#)
}

/// The item with a number, and a score that writes change.
fn item(n: u64, score: &str) -> String {
    let note = "the quick brown fox jumps over the lazy dog; ".repeat(17);
    format!(
        r#"{{{},"name":{{"S":"the customer with the number {n:08}"}},"email":{{"S":"customer-{n:08}@example.com"}},"status":{{"S":"active"}},"score":{{"N":"{score}"}},"visits":{{"N":"7"}},"balance":{{"N":"1234.56"}},"verified":{{"BOOL":true}},"tags":{{"SS":["blue","green","red"]}},"address":{{"M":{{"street":{{"S":"Long Street 12"}},"city":{{"S":"Reykjavik"}},"zip":{{"S":"12345"}}}}}},"scores":{{"L":[{{"N":"1"}},{{"N":"2"}},{{"N":"3"}}]}},"note":{{"S":"{note}"}}}}"#,
        key_members(n)
    )
}

/// Selects random items. The same seed results in the same items.
pub(super) struct Picker(SeededRandom);

impl Picker {
    pub(super) fn new(seed: u64) -> Self {
        Self(SeededRandom::new(seed))
    }

    fn item(&self) -> u64 {
        self.0.below(ITEMS)
    }

    /// An item that is followed by at least `count - 1` items in its partition.
    fn start_of(&self, count: u64) -> u64 {
        let room = PARTITION.saturating_sub(count) + 1;
        self.0.below(ITEMS / PARTITION) * PARTITION + self.0.below(room)
    }

    /// Three different items.
    fn three(&self) -> [u64; 3] {
        let first = self.item();
        [0, 1, 2].map(|n| (first + n) % ITEMS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_body_is_json() {
        let picker = Picker::new(1);
        let calls = Operation::ALL.map(|operation| operation.call(&picker));
        for call in calls.into_iter().chain([create(), list()]).chain(load()) {
            let parsed = serde_json::from_str::<serde_json::Value>(&call.body);
            assert!(parsed.is_ok_and(|json| json.is_object()), "{call:?}");
        }
    }

    /// The size of a value as DynamoDB counts it.
    fn size(value: &serde_json::Value) -> usize {
        let (kind, value) = value.as_object().unwrap().iter().next().unwrap();
        let text = || value.as_str().unwrap().len();
        match (kind.as_str(), value) {
            ("S", _) => text(),
            ("N", _) => text().div_ceil(2) + 1,
            ("SS", set) => {
                let texts = set.as_array().unwrap().iter();
                texts.map(|text| text.as_str().unwrap().len()).sum()
            }
            ("L", list) => {
                3 + list
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|v| size(v) + 1)
                    .sum::<usize>()
            }
            ("M", map) => 3 + sizes(map) + map.as_object().unwrap().len(),
            _ => 1,
        }
    }

    fn sizes(attributes: &serde_json::Value) -> usize {
        let attributes = attributes.as_object().unwrap().iter();
        attributes
            .map(|(name, value)| name.len() + size(value))
            .sum()
    }

    #[test]
    fn items_have_one_kilobyte() {
        for n in [0, 7, ITEMS - 1] {
            let item = serde_json::from_str(&item(n, FRESH)).unwrap();
            assert!((1000..=1024).contains(&sizes(&item)), "{}", sizes(&item));
        }
    }

    #[test]
    fn batch_has_no_duplicate_keys() {
        let body = Operation::BatchGet.call(&Picker::new(3)).body;
        let parsed: serde_json::Value = serde_json::from_str(&body).unwrap();
        let keys = parsed["RequestItems"][TABLE]["Keys"].as_array().unwrap();
        let unique: std::collections::BTreeSet<_> = keys.iter().map(ToString::to_string).collect();
        assert_eq!((keys.len(), unique.len()), (25, 25));
    }
}
