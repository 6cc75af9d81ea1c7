//! A shopping cart as a stream of events. The events are stored, and the content of the cart is computed from them.
//!
//! A command is a function from the state to events or an error. It does not use the store, so its tests at the end of
//! this file do not need one. A snapshot stored with the events keeps loading at one read, however long the stream
//! becomes.
//!
//! `cargo run -p floe-examples --bin cart`

#![expect(clippy::print_stdout, reason = "the program prints its results")]

use std::collections::BTreeMap;

use floe::events::{Access, Decider, Metadata, StreamName};
use floe::{Db, Error, Event};
use floe_examples::{Fallible, arguments, claim};

const USAGE: &str = "\
Usage: cargo run -p floe-examples --bin cart

A shopping cart as a stream of events: commands are decided on its state, even by two people concurrently.";

/// The events of a cart.
#[derive(Clone, Debug, PartialEq, Event)]
enum CartEvent {
    ItemAdded {
        sku: String,
        quantity: u32,
    },
    ItemRemoved {
        sku: String,
    },
    CheckedOut,
    /// The content of the cart, stored with the events.
    Snapshot {
        items: BTreeMap<String, u32>,
        is_closed: bool,
    },
}

/// The state of a cart.
#[derive(Clone, Debug, Default, PartialEq)]
struct CartState {
    items: BTreeMap<String, u32>,
    is_closed: bool,
}

enum Cart {}

impl Decider for Cart {
    const CATEGORY: &'static str = "Cart";
    type Id = str;
    type Event = CartEvent;
    type State = CartState;

    fn initial() -> CartState {
        CartState::default()
    }

    fn evolve(mut state: CartState, event: &CartEvent) -> CartState {
        match event {
            CartEvent::ItemAdded { sku, quantity } => {
                *state.items.entry(sku.clone()).or_default() += quantity;
            }
            CartEvent::ItemRemoved { sku } => _ = state.items.remove(sku),
            CartEvent::CheckedOut => state.is_closed = true,
            CartEvent::Snapshot { items, is_closed } => {
                state = CartState {
                    items: items.clone(),
                    is_closed: *is_closed,
                };
            }
        }
        state
    }

    fn access() -> Access<Self> {
        Access::Snapshot {
            is_origin: |event| matches!(event, CartEvent::Snapshot { .. }),
            to_snapshot: |state| CartEvent::Snapshot {
                items: state.items.clone(),
                is_closed: state.is_closed,
            },
        }
    }
}

/// Adds items to the cart.
fn add(cart: &CartState, sku: &str, quantity: u32) -> Result<Vec<CartEvent>, CartError> {
    if cart.is_closed {
        return Err(CartError::Closed);
    }
    Ok(vec![CartEvent::ItemAdded {
        sku: sku.to_owned(),
        quantity,
    }])
}

/// Removes an item; no event if it is not in the cart.
fn remove(cart: &CartState, sku: &str) -> Result<Option<CartEvent>, CartError> {
    if cart.is_closed {
        return Err(CartError::Closed);
    }
    Ok(cart
        .items
        .contains_key(sku)
        .then(|| CartEvent::ItemRemoved {
            sku: sku.to_owned(),
        }))
}

/// Closes the cart. Returns the number of items bought.
fn check_out(cart: &CartState) -> Result<(u32, [CartEvent; 1]), CartError> {
    match (cart.is_closed, cart.items.values().sum()) {
        (true, _) => Err(CartError::Closed),
        (false, 0) => Err(CartError::Empty),
        (false, pieces) => Ok((pieces, [CartEvent::CheckedOut])),
    }
}

#[derive(Debug, PartialEq)]
enum CartError {
    Closed,
    Empty,
    Store(Error),
}

impl From<Error> for CartError {
    fn from(error: Error) -> Self {
        Self::Store(error)
    }
}

impl std::fmt::Display for CartError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Closed => f.write_str("the cart is closed"),
            Self::Empty => f.write_str("the cart is empty"),
            Self::Store(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for CartError {}

#[tokio::main]
async fn main() -> Fallible {
    if arguments(USAGE, 0)?.is_none() {
        return Ok(());
    }
    let db = Db::memory()?;
    db.events().ensure_table().await?;
    fill_together(&db).await?;
    let pieces = db.stream::<Cart>("ann").transact(check_out).await?;
    println!("checked out: {pieces} pieces");
    claim(pieces == 12, "no concurrent addition is lost")?;
    let late = db
        .stream::<Cart>("ann")
        .transact(|cart| add(cart, "late", 1))
        .await;
    println!(
        "one more item: {}",
        late.as_ref()
            .err()
            .map_or_else(String::new, CartError::to_string)
    );
    claim(
        late == Err(CartError::Closed),
        "a closed cart rejects additions",
    )?;
    print_history(&db).await
}

/// Two people fill one cart concurrently. After a conflict, the command is decided again.
async fn fill_together(db: &Db) -> Fallible {
    let fill = async |person: &str, skus: [&str; 3]| {
        let metadata = Metadata::new().correlation(person);
        let cart = db.stream::<Cart>("ann").metadata(metadata);
        for sku in skus {
            cart.transact(|state| add(state, sku, 2)).await?;
        }
        cart.transact(|state| remove(state, "nothing")).await
    };
    let (ann, bob) = tokio::join!(
        fill("ann", ["tea", "jam", "rye"]),
        fill("bob", ["tea", "oil", "fig"])
    );
    ann?;
    bob?;
    let state = db.stream::<Cart>("ann").query(CartState::clone).await?;
    println!("in the cart: {:?}", state.items);
    Ok(())
}

async fn print_history(db: &Db) -> Fallible {
    let store = db.events();
    let name = StreamName::new(Cart::CATEGORY, "ann")?;
    let events = store.read(&name).collect().await?;
    for read in &events {
        let person = read.event.correlation_id.as_deref().unwrap_or("-");
        let body = String::from_utf8_lossy(&read.event.data);
        println!(
            "{:>3} {:<12} {person:<4} {body}",
            read.index, read.event.event_type
        );
    }
    claim(
        events.len() == 7,
        "six additions and the checkout are stored",
    )
}

#[cfg(test)]
mod tests {
    use floe::events::harness::Harness;

    use super::*;

    fn added(sku: &str, quantity: u32) -> CartEvent {
        CartEvent::ItemAdded {
            sku: sku.to_owned(),
            quantity,
        }
    }

    #[test]
    fn removing_a_missing_item_is_no_event() {
        let cart = || Harness::<Cart>::new().given([added("tea", 1)]);
        cart().when(|state| remove(state, "jam")).then_nothing();
        let removed = CartEvent::ItemRemoved {
            sku: "tea".to_owned(),
        };
        cart().when(|state| remove(state, "tea")).then([removed]);
    }

    #[test]
    fn cart_is_checked_out_once_and_not_if_empty() {
        Harness::<Cart>::new()
            .when(check_out)
            .then_err(CartError::Empty);
        let filled = Harness::<Cart>::new().given([added("tea", 2), added("jam", 1)]);
        filled
            .when(check_out)
            .then([CartEvent::CheckedOut])
            .then_result(3);
        let closed = Harness::<Cart>::new().given([added("tea", 1), CartEvent::CheckedOut]);
        closed.when(check_out).then_err(CartError::Closed);
    }
}
