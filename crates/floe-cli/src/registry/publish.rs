//! `floe registry publish`: publishes the next version of a group.

use floe::registry::RegistrySchema;
use floe_store::{Item, Number, Value};

use super::GroupArgs;
use crate::{Failure, Input, Result, members, with_formats};

/// Publish an item as the next version of its group
#[derive(Debug, clap::Args)]
#[command(after_help = with_formats("\
Examples:
  floe registry publish Layer region=eu package=numpy --item '{\"arn\":\"arn:3\"}' \\
      --data ./layers
  floe registry publish Layer --item @layer.json --if-changed --json \\
      --data ./layers | jq .version

The item has the stored attributes of all fields; key fields may be given as arguments instead. It is validated against the \
description: required fields, types, and no other attributes. It gets the next number and the same hash as from a program, and \
becomes the latest version; the previous one is deprecated, all in one commit. Constraints in the program's code, such as \
number ranges, are not checked."))]
pub(super) struct Publish {
    /// Item to publish: the stored attributes of its fields
    #[arg(long, value_name = "JSON")]
    item: String,

    /// Publish only if the hash differs from that of the latest version
    #[arg(long)]
    if_changed: bool,

    #[command(flatten)]
    input: Input,

    #[command(flatten)]
    group: GroupArgs,
}

impl Publish {
    pub(super) fn run(&self) -> Result {
        let item = self.input.item("--item", &self.item)?;
        self.group.registry.run(async |(schema, versions)| {
            let item = self.with_key_fields(schema, item)?;
            let (number, is_new) = if self.if_changed {
                let published = versions.publish_if_changed(&item).await?;
                (published.number(), published.is_new())
            } else {
                (versions.publish(&item).await?, true)
            };
            let done = if is_new { "published" } else { "unchanged" };
            self.group.registry.target.output.line(
                members!["version": number, "published": is_new],
                &format_args!("{done}: version {number}"),
            )
        })
    }

    /// Adds the key fields of the arguments to the item.
    fn with_key_fields(&self, schema: &RegistrySchema, mut item: Item) -> Result<Item> {
        for (name, text) in &self.group.names {
            let mut fields = schema.group.iter();
            let field = fields.find(|field| field.name == name || field.attribute == name);
            let field = field.ok_or_else(|| {
                Failure::usage(format!(
                    "the field does not belong to the group: name={name} group={}",
                    schema.group_text()
                ))
            })?;
            // Text that is not a number is rejected later, with all other fields.
            let number = text
                .parse::<Number>()
                .ok()
                .filter(|_| field.kind.as_str() == "number");
            let value = number.map_or_else(|| Value::from(text.as_str()), Value::N);
            if item.insert(field.attribute, value).is_some() {
                return Err(Failure::usage(format!(
                    "the field is also in --item: field={name}"
                )));
            }
        }
        Ok(item)
    }
}
