//! The shop of the demo: products and purchases are models, accounts are streams, the graph links customers to the products
//! they bought, and the price list is a registry.
//!
//! Each purchase is one commit: it reduces the stock, creates the purchase, appends to the account and links the graph. A
//! price change is one commit over the product and the next version of the price list.

use std::collections::BTreeMap;

use floe::events::feed::IndexerOptions;
use floe::events::{Access, Decider};
use floe::graph::{Emit, GraphSchema, KeyOf, MapIndex, Relation};
use floe::{Db, Entity, Error, Event, Model, Registry, Tx};

use crate::{Result, Table};

/// A product on sale.
#[derive(Clone, Debug, Model)]
struct Product {
    #[model(key)]
    sku: String,
    name: String,
    cents: i64,
    #[model(min = 0)]
    stock: i64,
}

/// A purchase of a customer.
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

/// An event of an account.
#[derive(Clone, Debug, PartialEq, Event)]
enum AccountEvent {
    Deposited { cents: i64 },
    Paid { sku: String, cents: i64 },
    Balance { cents: i64 },
}

/// The account of a customer. Its state is the balance.
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

/// A customer in the graph.
#[derive(Clone, Debug, PartialEq, Entity)]
#[entity(type = "customer")]
struct Customer {
    id: String,
    name: String,
    city: String,
}

/// A product in the graph.
#[derive(Clone, Debug, PartialEq, Entity)]
#[entity(type = "product")]
struct CatalogProduct {
    id: String,
    name: String,
}

/// Products that a customer bought.
enum Bought {}

impl Relation for Bought {
    const PREDICATE: &'static str = "bought";
    type Subject = Customer;
    type Object = CatalogProduct;
    type Attributes = ();
}

/// Customers by city.
enum ByCity {}

impl MapIndex for ByCity {
    type Of = Customer;
    type Key = String;
    const NAME: &'static str = "by_city";

    fn map(customer: &Customer, emit: &mut Emit<String>) {
        emit.key(customer.city.clone());
    }
}

/// The price list of a market. Old versions are kept for a year.
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

/// What [`fill`] created, for the printed summary.
#[derive(Debug, Default)]
pub(super) struct ShopSummary {
    purchases: u64,
    rejection: String,
    balances: Vec<(String, i64)>,
    feed_events: u64,
    price_lists: u64,
}

/// Fills an empty store.
pub(super) async fn fill(db: Db) -> Result<ShopSummary> {
    let db = db.with_graph(GraphSchema::new().relation::<Bought>().index::<ByCity>());
    db.ensure_tables(&[Product::SCHEMA, Purchase::SCHEMA])
        .await?;
    db.ensure_registries(&[PriceList::SCHEMA]).await?;
    db.ensure_graph().await?;
    let events = db.events();
    events.ensure_table().await?;
    events.ensure_feed().await?;
    stock(&db).await?;
    let mut summary = ShopSummary::default();
    for (customer, number, sku, pieces) in PURCHASES {
        db.transact(async |tx| buy(tx, customer, number, sku, pieces).await)
            .await?;
        summary.purchases += 1;
    }
    summary.price_lists = db
        .transact(async |tx| reprice(tx, "tea", 1_100, "a bad harvest").await)
        .await?;
    // There are not enough tents: the whole commit is rejected.
    let too_many = db.transact(async |tx| buy(tx, "fridtjof", 3, "tent", 100).await);
    summary.rejection = too_many
        .await
        .err()
        .map(|error| error.to_string())
        .unwrap_or_default();
    for (customer, ..) in CUSTOMERS {
        let account = db.stream::<Account>(customer);
        let balance = account.query(|balance| *balance).await?;
        summary.balances.push((customer.to_owned(), balance));
    }
    let mut indexer = events.indexer(IndexerOptions::new())?;
    summary.feed_events = indexer.run_until_caught_up().await?.events;
    Ok(summary)
}

/// Creates products, customers, accounts and the first price list.
async fn stock(db: &Db) -> Result<(), Error> {
    db.transact(async |tx| {
        let graph = tx.graph("shop");
        for (sku, name, cents, stock) in PRODUCTS {
            let (sku, name) = (sku.to_owned(), name.to_owned());
            graph
                .create(&CatalogProduct {
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
            reason: "start of season".to_owned(),
            cents: PRODUCTS
                .map(|(sku, _, cents, _)| (sku.to_owned(), cents))
                .into(),
        };
        tx.registry::<PriceList>().publish(&list).await?;
        Ok::<_, Error>(())
    })
    .await
}

/// Buys a product: one commit over two models, a stream and the graph.
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
        .related::<Bought>(&KeyOf::<Customer>::new(customer))
        .link(&KeyOf::<CatalogProduct>::new(sku))
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

/// Changes a price: one commit over the product and the next version of the price list. Returns the version.
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

impl ShopSummary {
    /// Prints the summary.
    pub(super) fn print(&self) -> Result {
        let (products, customers) = (PRODUCTS.len(), CUSTOMERS.len());
        let (purchases, accounts) = (self.purchases, self.balances.len());
        let balances = self.balances.iter();
        let balances = balances
            .map(|(customer, cents)| format!("{customer} {}.{:02}", cents / 100, cents % 100));
        let balances = balances.collect::<Vec<_>>().join(", ");
        let (feed_events, price_lists) = (self.feed_events, self.price_lists);
        let mut summary = Table::key_value();
        summary.entry(
            "models",
            format!("{products} products, {purchases} purchases, in optimistic transactions"),
        );
        summary.entry(
            "events",
            format!("{accounts} accounts as streams; balances: {balances}"),
        );
        summary.entry(
            "feed",
            format!("{feed_events} events of all streams, readable from any checkpoint"),
        );
        summary.entry(
            "graph",
            format!(
                "{customers} customers and {products} products, linked by {purchases} purchases"
            ),
        );
        summary.entry(
            "registry",
            format!(
                "{price_lists} versions of the price list; the old version expires after a year"
            ),
        );
        summary.entry(
            "one commit",
            "each purchase: stock, purchase, account and graph;",
        );
        summary.entry("", "the price change: product and price list");
        summary.entry("rejected", format!("buying 100 tents: {}", self.rejection));
        summary.print()
    }
}
