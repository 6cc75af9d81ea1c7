//! Types whose values can be recognised among the items of a table, so that change handlers can select them.

use floe_store::Item;

use crate::error::Result;

/// A type whose values are stored in a table, so that a [`Router`](crate::changes::Router) can select their changes.
///
/// Every [`Model`](crate::Model) implements it. Implement it yourself for items of another form:
///
/// ```
/// use floe::changes::Watched;
/// use floe::Error;
/// use floe_store::{Item, Value};
///
/// struct Invoice { number: String }
///
/// impl Watched for Invoice {
///     const NAME: &'static str = "Invoice";
///
///     fn table() -> &'static str {
///         "billing"
///     }
///
///     fn recognises(item: &Item) -> bool {
///         item.get("pk").and_then(Value::as_s).is_some_and(|pk| pk.starts_with("invoice#"))
///     }
///
///     fn decode(item: &Item) -> Result<Self, Error> {
///         let number = item.get("pk").and_then(Value::as_s).unwrap_or_default();
///         Ok(Self { number: number.to_owned() })
///     }
/// }
///
/// let item = Item::new().with("pk", "invoice#7");
/// assert!(Invoice::recognises(&item));
/// assert_eq!(Invoice::decode(&item)?.number, "invoice#7");
/// # Ok::<(), Error>(())
/// ```
pub trait Watched: Sized + Send + 'static {
    /// Its name in handler names and messages.
    const NAME: &'static str;

    /// The table of its items.
    fn table() -> &'static str;

    /// Whether an item of the table is of this type. If the stream of the table contains keys only, `item` is the key.
    fn recognises(item: &Item) -> bool;

    /// Decodes an item that [`recognises`](Self::recognises) accepted.
    ///
    /// # Errors
    ///
    /// If the item has another form. A retry cannot help, so the change becomes a dead letter at once.
    fn decode(item: &Item) -> Result<Self>;
}
