//! `floe registry publish`: the next version of a group.

use floe::registry::RegistrySchema;
use floe_store::{Item, Number, Value};

use super::GroupPlace;
use crate::{Failure, Input, Result, members, with_forms};

/// Publish an item as the next version of its group
#[derive(Debug, clap::Args)]
#[command(after_help = with_forms("\
Examples:
  floe registry publish Layer region=eu package=numpy --item '{\"arn\":\"arn:3\"}' \\
      --data ./layers
  floe registry publish Layer --item @layer.json --if-changed --json \\
      --data ./layers | jq .version

The item has the attributes of the fields, as they are stored; names of the group may be given before it instead. It is \
checked against the description: all fields that are not optional, of their kinds, and nothing else. It gets the next \
number and the same hash as a program would give it, and is the latest; the version that was is deprecated, all in one \
commit. What a program checks besides, as the range of a number, is in the program."))]
pub(super) struct Publish {
    /// What is published: the attributes of its fields
    #[arg(long, value_name = "JSON")]
    item: String,

    /// Leave it if the latest version has the same content, by its hash
    #[arg(long)]
    if_changed: bool,

    #[command(flatten)]
    input: Input,

    #[command(flatten)]
    group: GroupPlace,
}

impl Publish {
    pub(super) fn run(&self) -> Result {
        let item = self.input.item("--item", &self.item)?;
        self.group.place.run(async |(schema, versions)| {
            let item = self.with_names(schema, item)?;
            let (number, is_new) = match self.if_changed {
                true => {
                    let published = versions.publish_if_changed(&item).await?;
                    (published.number(), published.is_new())
                }
                false => (versions.publish(&item).await?, true),
            };
            let done = if is_new { "published" } else { "unchanged" };
            self.group.place.at.output.line(
                members!["version": number, "published": is_new],
                &format_args!("{done}: version {number}"),
            );
            Ok(())
        })
    }

    /// The item, with the names that were given before it.
    fn with_names(&self, schema: &RegistrySchema, mut item: Item) -> Result<Item> {
        for (name, text) in &self.group.names {
            let mut fields = schema.group.iter();
            let field = fields.find(|field| field.name == name || field.attribute == name);
            let field = field.ok_or_else(|| {
                Failure::usage(format!(
                    "the name is none of the group: name={name} group={}",
                    schema.group_text()
                ))
            })?;
            // Whether it is one is checked with all other fields.
            let number = text
                .parse::<Number>()
                .ok()
                .filter(|_| field.kind.as_str() == "number");
            let value = number.map_or_else(|| Value::from(text.as_str()), Value::N);
            if item.insert(field.attribute, value).is_some() {
                return Err(Failure::usage(format!(
                    "the name stands in --item as well: name={name}"
                )));
            }
        }
        Ok(item)
    }
}
