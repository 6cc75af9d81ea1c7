//! A shop: an order reduces the stock and appends an event, in one commit.

use floe::events::Decider;
use floe::{Db, Error, Event, Model};

#[derive(Model)]
struct Stock {
    #[model(key)]
    product: String,
    #[model(min = 0)]
    left: i64,
}

#[derive(Clone, Debug, PartialEq, Event)]
enum OrderEvent {
    Placed { product: String, quantity: u32 },
}

/// An order is an event stream. Its state is whether it was placed.
enum Order {}

impl Decider for Order {
    const CATEGORY: &'static str = "Order";
    type Id = str;
    type Event = OrderEvent;
    type State = bool;

    fn initial() -> bool {
        false
    }

    fn evolve(_: bool, event: &OrderEvent) -> bool {
        matches!(event, OrderEvent::Placed { .. })
    }
}

#[tokio::main]
pub(crate) async fn main() -> Result<(), Error> {
    let db = Db::open("data")?;
    db.ensure_tables(&[Stock::SCHEMA]).await?;
    db.events().ensure_table().await?;

    let left = db
        .transact(async |tx| {
            let product = "tea".to_owned();
            let full = Stock { product, left: 10 };
            let mut stock = tx.get_or_create(full).await?;
            let mut order = tx.stream::<Order>("o-1").await?;
            if !order.state() && stock.left >= 2 {
                stock.left -= 2;
                let (product, quantity) = (stock.product.to_string(), 2);
                order.append([OrderEvent::Placed { product, quantity }])?;
            }
            Ok::<_, Error>(*stock.left)
        })
        .await?;
    println!("tea left: {left}");
    Ok(())
}
