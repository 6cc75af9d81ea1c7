//! Table requests.

use std::collections::BTreeMap;

use aws_sdk_dynamodb::operation::{
    create_table, delete_table, describe_table, describe_time_to_live, list_tables,
    list_tags_of_resource, tag_resource, untag_resource, update_table, update_time_to_live,
};
use aws_sdk_dynamodb::types;
use floe_store::op::{
    CreateIndex, CreateTable, IndexUpdate, KeySchemaElement, ListTables, ListTablesOutput,
    UpdateTable, UpdateTimeToLive,
};
use floe_store::table::{
    Billing, IndexKind, KeyKind, Projection, StreamView, TableDescription, Throughput,
};
use floe_store::{Name, Result};

use super::{Client, built, limit, non_empty, number, required, send, settings};
use crate::retry::AttemptResult;

impl Client {
    /// Creates a table. The TTL attribute is set by another request.
    pub(crate) async fn create_table(
        &self,
        input: &CreateTable,
    ) -> AttemptResult<TableDescription> {
        let (mode, throughput) = billing(Some(input.billing))?;
        let tags: Result<Vec<_>> = input.tags.iter().map(tag).collect();
        let protection = Some(true).filter(|_| input.deletion_protection);
        let encryption = input.encryption.as_ref();
        let request = create_table::CreateTableInput::builder()
            .table_name(self.with_prefix(&input.table_name))
            .set_attribute_definitions(Some(definitions(&input.attribute_definitions)?))
            .set_key_schema(Some(key_schema(&input.key_schema)?))
            .set_global_secondary_indexes(non_empty(global_indexes(&input.indexes)?))
            .set_local_secondary_indexes(non_empty(local_indexes(&input.indexes)?))
            .set_billing_mode(mode)
            .set_provisioned_throughput(throughput)
            .set_stream_specification(input.stream.map(|view| stream(Some(view))).transpose()?)
            .set_tags(non_empty(tags?))
            .set_deletion_protection_enabled(protection)
            .set_table_class(input.class.map(|class| class.as_str().into()))
            .set_on_demand_throughput(settings::on_demand(input.scaling.on_demand))
            .set_warm_throughput(settings::warm(input.scaling.warm))
            .set_sse_specification(encryption.map(|e| settings::encryption(Some(e))));
        let response = send!(self.tables, request, &[&input.table_name])?;
        self.description(response.table_description)
    }

    /// Describes a table, without its tags and TTL attribute.
    pub(crate) async fn describe_table(&self, name: &str) -> AttemptResult<TableDescription> {
        let request =
            describe_table::DescribeTableInput::builder().table_name(self.with_prefix(name));
        let response = send!(self.tables, request, &[name])?;
        self.description(response.table)
    }

    pub(crate) async fn update_table(
        &self,
        input: &UpdateTable,
    ) -> AttemptResult<TableDescription> {
        let (mode, throughput) = billing(input.billing)?;
        let indexes: Result<Vec<_>> = input.indexes.iter().map(index_update).collect();
        let encryption = input.encryption.as_ref();
        let request = update_table::UpdateTableInput::builder()
            .table_name(self.with_prefix(&input.table_name))
            .set_attribute_definitions(non_empty(definitions(&input.attribute_definitions)?))
            .set_global_secondary_index_updates(non_empty(indexes?))
            .set_billing_mode(mode)
            .set_provisioned_throughput(throughput)
            .set_stream_specification(input.stream.map(stream).transpose()?)
            .set_deletion_protection_enabled(input.deletion_protection)
            .set_table_class(input.class.map(|class| class.as_str().into()))
            .set_on_demand_throughput(settings::on_demand_update(&input.scaling))
            .set_warm_throughput(settings::warm_update(&input.scaling))
            .set_sse_specification(encryption.map(|e| settings::encryption(e.as_ref())));
        let response = send!(self.tables, request, &[&input.table_name])?;
        self.description(response.table_description)
    }

    pub(crate) async fn delete_table(&self, name: &str) -> AttemptResult<()> {
        let request = delete_table::DeleteTableInput::builder().table_name(self.with_prefix(name));
        send!(self.tables, request, &[name]).map(drop)
    }

    /// Lists table names in the store.
    pub(crate) async fn list_tables(&self, input: &ListTables) -> AttemptResult<ListTablesOutput> {
        let request = list_tables::ListTablesInput::builder()
            .set_exclusive_start_table_name(input.start_after.clone())
            .set_limit(limit(input.limit));
        let response = send!(self.tables, request, &[])?;
        Ok(ListTablesOutput {
            table_names: response.table_names.unwrap_or_default(),
            last_name: response.last_evaluated_table_name,
        })
    }

    /// Returns the TTL attribute of a table, if TTL is enabled.
    pub(crate) async fn ttl_attribute(&self, name: &str) -> AttemptResult<Option<Name>> {
        let request = describe_time_to_live::DescribeTimeToLiveInput::builder()
            .table_name(self.with_prefix(name));
        let response = send!(self.tables, request, &[name])?;
        let on = response.time_to_live_description.filter(|ttl| {
            use types::TimeToLiveStatus::{Enabled, Enabling};
            matches!(ttl.time_to_live_status, Some(Enabled | Enabling))
        });
        Ok(on.and_then(|ttl| ttl.attribute_name).map(Name::from))
    }

    pub(crate) async fn update_time_to_live(&self, input: &UpdateTimeToLive) -> AttemptResult<()> {
        let setting = types::TimeToLiveSpecification::builder()
            .enabled(input.enabled)
            .attribute_name(input.attribute.as_str());
        let request = update_time_to_live::UpdateTimeToLiveInput::builder()
            .table_name(self.with_prefix(&input.table_name))
            .time_to_live_specification(built(setting.build())?);
        send!(self.tables, request, &[&input.table_name]).map(drop)
    }

    /// Returns a page of the tags of a resource, and the token of the next page.
    pub(crate) async fn tags(
        &self,
        arn: &str,
        next: Option<String>,
    ) -> AttemptResult<(BTreeMap<String, String>, Option<String>)> {
        let request = list_tags_of_resource::ListTagsOfResourceInput::builder()
            .resource_arn(arn)
            .set_next_token(next);
        let response = send!(self.tables, request, &[])?;
        let tags = response.tags.unwrap_or_default().into_iter();
        let tags = tags.map(|tag| (tag.key, tag.value)).collect();
        Ok((tags, response.next_token.filter(|token| !token.is_empty())))
    }

    pub(crate) async fn tag(
        &self,
        arn: &str,
        tags: &BTreeMap<String, String>,
    ) -> AttemptResult<()> {
        let tags: Result<Vec<_>> = tags.iter().map(tag).collect();
        let request = tag_resource::TagResourceInput::builder()
            .resource_arn(arn)
            .set_tags(Some(tags?));
        send!(self.tables, request, &[]).map(drop)
    }

    pub(crate) async fn untag(&self, arn: &str, keys: &[String]) -> AttemptResult<()> {
        let request = untag_resource::UntagResourceInput::builder()
            .resource_arn(arn)
            .set_tag_keys(Some(keys.to_vec()));
        send!(self.tables, request, &[]).map(drop)
    }

    fn description(
        &self,
        response: Option<types::TableDescription>,
    ) -> AttemptResult<TableDescription> {
        let response = required(response, "TableDescription")?;
        Ok(super::description::table(response, &self.names)?)
    }
}

fn tag((key, value): (&String, &String)) -> Result<types::Tag> {
    built(types::Tag::builder().key(key).value(value).build())
}

fn definitions(attributes: &[(Name, KeyKind)]) -> Result<Vec<types::AttributeDefinition>> {
    let definition = |(name, kind): &(Name, KeyKind)| {
        let definition = types::AttributeDefinition::builder().attribute_name(name.as_str());
        built(definition.attribute_type(kind.as_str().into()).build())
    };
    attributes.iter().map(definition).collect()
}

fn key_schema(elements: &[KeySchemaElement]) -> Result<Vec<types::KeySchemaElement>> {
    let element = |element: &KeySchemaElement| {
        let role = element.role.as_str().into();
        let element = types::KeySchemaElement::builder().attribute_name(element.name.as_str());
        built(element.key_type(role).build())
    };
    elements.iter().map(element).collect()
}

fn projection(projection: &Projection) -> types::Projection {
    let builder = types::Projection::builder();
    let builder = match projection {
        Projection::All => builder.projection_type(types::ProjectionType::All),
        Projection::KeysOnly => builder.projection_type(types::ProjectionType::KeysOnly),
        Projection::Include(names) => builder
            .projection_type(types::ProjectionType::Include)
            .set_non_key_attributes(Some(names.iter().map(ToString::to_string).collect())),
    };
    builder.build()
}

/// Adds the members of any index to a request, and those of a global index.
macro_rules! index {
    (global $request:expr, $index:ident) => {
        index!($request, $index)
            .set_provisioned_throughput($index.throughput.map(throughput).transpose()?)
            .set_on_demand_throughput(settings::on_demand($index.scaling.on_demand))
            .set_warm_throughput(settings::warm($index.scaling.warm))
    };
    ($request:expr, $index:ident) => {
        $request
            .index_name(&$index.name)
            .set_key_schema(Some(key_schema(&$index.key_schema)?))
            .projection(projection(&$index.projection))
    };
}

fn global_indexes(indexes: &[CreateIndex]) -> Result<Vec<types::GlobalSecondaryIndex>> {
    let global = indexes
        .iter()
        .filter(|index| index.kind == IndexKind::Global);
    let requests = global
        .map(|index| built(index!(global types::GlobalSecondaryIndex::builder(), index).build()));
    requests.collect()
}

fn local_indexes(indexes: &[CreateIndex]) -> Result<Vec<types::LocalSecondaryIndex>> {
    let local = indexes
        .iter()
        .filter(|index| index.kind == IndexKind::Local);
    let requests =
        local.map(|index| built(index!(types::LocalSecondaryIndex::builder(), index).build()));
    requests.collect()
}

fn index_update(update: &IndexUpdate) -> Result<types::GlobalSecondaryIndexUpdate> {
    let request = types::GlobalSecondaryIndexUpdate::builder();
    Ok(match update {
        IndexUpdate::Create(index) => {
            let create = types::CreateGlobalSecondaryIndexAction::builder();
            let create = index!(global create, index);
            request.create(built(create.build())?)
        }
        IndexUpdate::Update(name, units) => {
            let update = types::UpdateGlobalSecondaryIndexAction::builder()
                .index_name(name)
                .provisioned_throughput(throughput(*units)?);
            request.update(built(update.build())?)
        }
        IndexUpdate::Scale(name, scaling) => {
            let update = types::UpdateGlobalSecondaryIndexAction::builder()
                .index_name(name)
                .set_on_demand_throughput(settings::on_demand_update(scaling))
                .set_warm_throughput(settings::warm_update(scaling));
            request.update(built(update.build())?)
        }
        IndexUpdate::Delete(name) => {
            let delete = types::DeleteGlobalSecondaryIndexAction::builder().index_name(name);
            request.delete(built(delete.build())?)
        }
    }
    .build())
}

fn throughput(units: Throughput) -> Result<types::ProvisionedThroughput> {
    let throughput = types::ProvisionedThroughput::builder()
        .read_capacity_units(number(units.read))
        .write_capacity_units(number(units.write));
    built(throughput.build())
}

type BillingParameters = (
    Option<types::BillingMode>,
    Option<types::ProvisionedThroughput>,
);

fn billing(billing: Option<Billing>) -> Result<BillingParameters> {
    Ok(match billing {
        None => (None, None),
        Some(Billing::OnDemand) => (Some(types::BillingMode::PayPerRequest), None),
        Some(Billing::Provisioned(units)) => (
            Some(types::BillingMode::Provisioned),
            Some(throughput(units)?),
        ),
    })
}

/// Enables a stream with this view type, or disables it.
fn stream(view: Option<StreamView>) -> Result<types::StreamSpecification> {
    let stream = types::StreamSpecification::builder()
        .stream_enabled(view.is_some())
        .set_stream_view_type(view.map(|view| view.as_str().into()));
    built(stream.build())
}
