//! Models written by hand, for tests of their tables.

mod definition;
mod ensure;
mod infrastructure;
mod wrapper;

use crate::attribute::Attribute;
use crate::model::schema::{
    FieldKind, FieldSchema, IndexProjection, IndexSchema, Role, Schema, SortKeyEncoding,
};

const fn field(name: &'static str, role: Role, kind: FieldKind) -> FieldSchema {
    FieldSchema {
        name,
        attribute: name,
        role,
        kind,
        optional: false,
        read_only: false,
        has_default: false,
        json_schema: <String as Attribute>::json_schema,
    }
}

const ID: FieldSchema = field("id", Role::Partition, FieldKind::Text);
const PRODUCT: FieldSchema = field("product", Role::Plain, FieldKind::Text);
const PRICE: FieldSchema = field("price", Role::Plain, FieldKind::Number);
const UNTIL: FieldSchema = field("until", Role::Plain, FieldKind::Number);

/// A model of the table `Order`, with nothing but its key.
const fn model(model: &'static str, fields: &'static [FieldSchema]) -> Schema {
    Schema {
        model,
        table: "Order",
        fields,
        sort_constant: None,
        sort_key_encoding: SortKeyEncoding::Ordered,
        indexes: &[],
        expires: None,
        exactly_once: false,
        stream: false,
    }
}

const fn index(
    name: &'static str,
    key: &'static [&'static str],
    sort: &'static [&'static str],
    projection: IndexProjection,
) -> IndexSchema {
    IndexSchema {
        name,
        key,
        sort,
        sparse: false,
        projection,
    }
}

const BY_PRODUCT: IndexSchema = index("by_product", &["product"], &["price"], IndexProjection::All);
const BY_PRICE: IndexSchema = index(
    "by_price",
    &["price", "product"],
    &[],
    IndexProjection::Keys,
);

const ORDER_FIELDS: &[FieldSchema] = &[ID, PRODUCT, PRICE, UNTIL];

/// An order as it was first.
const PLAIN: Schema = model("Order", ORDER_FIELDS);

/// An order with indexes and expiry.
const FULL: Schema = Schema {
    indexes: &[BY_PRODUCT, BY_PRICE],
    expires: Some("until"),
    ..model("Order", ORDER_FIELDS)
};

/// An order whose changes are kept.
const STREAMED: Schema = Schema {
    stream: true,
    ..model("Order", ORDER_FIELDS)
};
