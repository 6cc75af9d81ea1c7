//! The shop of the demo: products and purchases as models, accounts as streams, who bought what as a graph, and the price
//! list as versions of a registry.
//!
//! Each purchase is one commit: the stock goes down, the purchase is written, the account has its event, and the graph is
//! linked, or nothing of it. A change of a price is one too: the product and the next version of the list.

use std::collections::BTreeMap;

use floe::events::feed::IndexerOptions;
use floe::events::{Access, Decider};
use floe::graph::{Emit, GraphSchema, MapIndex, Relation};
use floe::{Db, Entity, Error, Event, Model, Registry, Tx};

use crate::{Result, Table};

/// What is sold.
#[derive(Clone, Debug, Model)]
struct Product {
    #[model(key)]
    sku: String,
    name: String,
    cents: i64,
    #[model(min = 0)]
    stock: i64,
}

/// What somebody has bought.
#[derive(Clone, Debug, Model)]
struct Purchase {
    #[model(key)]
    customer: String,
    #[model(sort_key)]
    number: u32,
    sku: String,
    pieces: i64,
    cents: i64,
}

/// What happens on an account.
#[derive(Clone, Debug, PartialEq, Event)]
enum AccountEvent {
    Deposited { cents: i64 },
    Paid { sku: String, cents: i64 },
    Balance { cents: i64 },
}

/// The account of a customer: a balance, folded from what happened.
enum Account {}

impl Decider for Account {
    const CATEGORY: &'static str = "Account";
    type Id = str;
    type Event = AccountEvent;
    type State = i64;

    fn initial() -> i64 {
        0
    }

    fn evolve(balance: i64, event: &AccountEvent) -> i64 {
        match event {
            AccountEvent::Deposited { cents } => balance + cents,
            AccountEvent::Paid { cents, .. } => balance - cents,
            AccountEvent::Balance { cents } => *cents,
        }
    }

    fn access() -> Access<Self> {
        Access::Snapshot {
            is_origin: |event| matches!(event, AccountEvent::Balance { .. }),
            to_snapshot: |balance| AccountEvent::Balance { cents: *balance },
        }
    }
}

/// Somebody who buys.
#[derive(Clone, Debug, PartialEq, Entity)]
#[entity(type = "customer")]
struct Customer {
    id: String,
    name: String,
    city: String,
}

/// Something that is bought.
#[derive(Clone, Debug, PartialEq, Entity)]
#[entity(type = "product")]
struct Goods {
    id: String,
    name: String,
}

/// What a customer has bought.
enum Bought {}

impl Relation for Bought {
    const PREDICATE: &'static str = "bought";
    type Subject = Customer;
    type Object = Goods;
    type Attributes = ();
}

/// Customers by their cities.
enum ByCity {}

impl MapIndex for ByCity {
    type Of = Customer;
    type Key = String;
    const NAME: &'static str = "by_city";

    fn map(customer: &Customer, emit: &mut Emit<String>) {
        emit.key(customer.city.clone());
    }
}

/// What everything costs in a market, version by version. An old list stays for a year.
#[derive(Clone, Debug, PartialEq, Registry)]
#[registry(
    table = "PriceList",
    pk = "prices#{market}",
    sk = "v{version}",
    latest = "latest",
    status = "state",
    expires = "expires",
    retention = "365d",
    index(name = "by-market", key = market)
)]
struct PriceList {
    market: String,
    reason: String,
    cents: BTreeMap<String, i64>,
}

const MARKET: &str = "north";

const PRODUCTS: [(&str, &str, i64, i64); 5] = [
    ("sled", "Sled of ash wood", 12_900, 12),
    ("rope", "Rope, 30 m", 4_500, 40),
    ("lamp", "Storm lamp", 3_200, 25),
    ("tent", "Tent for two", 28_900, 6),
    ("tea", "Black tea, 500 g", 900, 200),
];

const CUSTOMERS: [(&str, &str, &str); 3] = [
    ("ada", "Ada", "Oslo"),
    ("roald", "Roald", "Oslo"),
    ("fridtjof", "Fridtjof", "Bergen"),
];

const PURCHASES: [(&str, u32, &str, i64); 8] = [
    ("ada", 1, "sled", 1),
    ("ada", 2, "tea", 3),
    ("ada", 3, "lamp", 2),
    ("roald", 1, "tent", 1),
    ("roald", 2, "rope", 2),
    ("roald", 3, "tea", 1),
    ("fridtjof", 1, "tent", 1),
    ("fridtjof", 2, "lamp", 1),
];

/// What the shop was filled with.
#[derive(Debug, Default)]
pub(super) struct Filled {
    purchases: u64,
    refused: String,
    balances: Vec<(String, i64)>,
    fed: u64,
    lists: u64,
}

/// Fills an empty store.
pub(super) async fn fill(db: Db) -> Result<Filled> {
    let db = db.with_graph(GraphSchema::new().relation::<Bought>().index::<ByCity>());
    db.ensure_tables(&[Product::SCHEMA, Purchase::SCHEMA])
        .await?;
    db.ensure_registries(&[PriceList::SCHEMA]).await?;
    db.ensure_graph().await?;
    let events = db.events();
    events.ensure_table().await?;
    events.ensure_feed().await?;
    stock(&db).await?;
    let mut filled = Filled::default();
    for (customer, number, sku, pieces) in PURCHASES {
        db.transact(async |tx| buy(tx, customer, number, sku, pieces).await)
            .await?;
        filled.purchases += 1;
    }
    filled.lists = db
        .transact(async |tx| reprice(tx, "tea", 1_100, "a bad harvest").await)
        .await?;
    // Nobody can buy what is not there: nothing of the commit happens.
    let too_many = db.transact(async |tx| buy(tx, "fridtjof", 3, "tent", 100).await);
    filled.refused = too_many
        .await
        .err()
        .map(|error| error.to_string())
        .unwrap_or_default();
    for (customer, ..) in CUSTOMERS {
        let account = db.stream::<Account>(customer);
        let balance = account.query(|balance| *balance).await?;
        filled.balances.push((customer.to_owned(), balance));
    }
    let mut indexer = events.indexer(IndexerOptions::new())?;
    filled.fed = indexer.run_until_caught_up().await?.events;
    Ok(filled)
}

/// What there is before anybody buys.
async fn stock(db: &Db) -> Result<(), Error> {
    db.transact(async |tx| {
        let graph = tx.graph("shop");
        for (sku, name, cents, stock) in PRODUCTS {
            let (sku, name) = (sku.to_owned(), name.to_owned());
            graph
                .create(&Goods {
                    id: sku.clone(),
                    name: name.clone(),
                })
                .await?;
            drop(tx.create(Product {
                sku,
                name,
                cents,
                stock,
            })?);
        }
        for (id, name, city) in CUSTOMERS {
            let (name, city) = (name.to_owned(), city.to_owned());
            graph
                .create(&Customer {
                    id: id.to_owned(),
                    name,
                    city,
                })
                .await?;
            let mut account = tx.stream::<Account>(id).await?;
            account.append([AccountEvent::Deposited { cents: 100_000 }])?;
        }
        let list = PriceList {
            market: MARKET.to_owned(),
            reason: "the season begins".to_owned(),
            cents: PRODUCTS
                .map(|(sku, _, cents, _)| (sku.to_owned(), cents))
                .into(),
        };
        tx.registry::<PriceList>().publish(&list).await?;
        Ok::<_, Error>(())
    })
    .await
}

/// A purchase: one commit over a model, a new item, a stream and the graph.
async fn buy(tx: &Tx, customer: &str, number: u32, sku: &str, pieces: i64) -> Result<(), Error> {
    let Some(mut product) = tx.get::<Product>(sku).await? else {
        return Ok(());
    };
    product.stock -= pieces;
    let cents = *product.cents * pieces;
    let mut account = tx.stream::<Account>(customer).await?;
    account.append([AccountEvent::Paid {
        sku: sku.to_owned(),
        cents,
    }])?;
    let graph = tx.graph("shop");
    graph
        .related::<Bought>(&("customer", customer))
        .link(&("product", sku))
        .await?;
    let purchase = Purchase {
        customer: customer.to_owned(),
        number,
        sku: sku.to_owned(),
        pieces,
        cents,
    };
    tx.create(purchase).map(drop)
}

/// Another price: one commit over the product and the list, of which it is the next version. Returns its number.
async fn reprice(tx: &Tx, sku: &str, cents: i64, reason: &str) -> Result<u64, Error> {
    let lists = tx.registry::<PriceList>();
    let (product, latest) = (tx.get::<Product>(sku).await?, lists.latest(MARKET).await?);
    let (Some(mut product), Some(latest)) = (product, latest) else {
        return Ok(0);
    };
    product.cents.set(cents)?;
    let mut list = latest.value;
    list.cents.insert(sku.to_owned(), cents);
    reason.clone_into(&mut list.reason);
    lists.publish(&list).await
}

impl Filled {
    /// Prints what was done.
    pub(super) fn print(&self) {
        let (products, customers) = (PRODUCTS.len(), CUSTOMERS.len());
        let (purchases, accounts) = (self.purchases, self.balances.len());
        let balances = self.balances.iter();
        let balances = balances
            .map(|(customer, cents)| format!("{customer} {}.{:02}", cents / 100, cents % 100));
        let balances = balances.collect::<Vec<_>>().join(", ");
        let (fed, lists, refused) = (self.fed, self.lists, &self.refused);
        let mut facts = Table::of_facts();
        facts.fact(
            "models",
            format!("{products} products, {purchases} purchases, in transactions without a lock"),
        );
        facts.fact(
            "events",
            format!("{accounts} accounts as streams; what is left: {balances}"),
        );
        facts.fact(
            "feed",
            format!("{fed} events, in one order that can be read again from any place"),
        );
        facts.fact(
            "graph",
            format!(
                "{customers} customers and {products} products, {purchases} of them joined by what was bought"
            ),
        );
        facts.fact(
            "registry",
            format!("{lists} versions of the price list; the old one goes after a year"),
        );
        facts.fact(
            "one commit",
            "each purchase: stock, purchase, account and graph, all or nothing;",
        );
        facts.fact("", "the dearer tea: the product and the next price list");
        facts.fact("refused", format!("100 tents: {refused}"));
        facts.print();
    }
}
