//! Values that can be recognised among the items of a table: what a handler of changes can ask for by its type.

use floe_store::Item;

use crate::error::Result;

/// A type whose values stand in a table, so that a [`Router`](crate::changes::Router) can hand their changes out.
///
/// Every [`Model`] is one. By hand, for items of another form:
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
    /// What it is called in the names of handlers and in messages.
    const NAME: &'static str;

    /// The table that its items are in.
    fn table() -> &'static str;

    /// Whether an item of the table is one of this type. Of a table whose stream holds keys alone, this is the key.
    fn recognises(item: &Item) -> bool;

    /// The value of an item that was recognised.
    ///
    /// # Errors
    ///
    /// When the item is of another form. Trying again does not help then, so the change is parked at once.
    fn decode(item: &Item) -> Result<Self>;
}
