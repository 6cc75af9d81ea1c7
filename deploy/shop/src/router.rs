//! What follows from a change: a line in the log here, and whatever a shop does about it elsewhere.

use floe::Db;
use floe::changes::{Expired, Inserted, Message, Router};

use crate::models::{Order, PriceList};

/// Routes the changes of the shop.
#[expect(clippy::print_stdout, reason = "what Lambda puts into the log")]
pub(crate) fn router(db: &Db) -> Router {
    Router::new()
        .on_inserted::<Order>(async |new: Inserted<Order>| {
            let Order {
                id,
                customer,
                placed,
            } = new.value;
            println!("an order was placed: id={id} customer={customer} placed={placed}");
            Ok(())
        })
        .on_expired::<PriceList>(db, async |gone: Expired<PriceList>| {
            let PriceList { region, document } = gone.version.value;
            println!("a price list has expired: region={region} document={document}");
            Ok(())
        })
        .outbox("order.*", async |message: Message| {
            println!("a message: topic={} id={}", message.topic, message.id());
            Ok(())
        })
}
