//! Change streams of DynamoDB. Which shard is read when is up to the reader.
//!
//! ARNs, shard ids, iterators and sequence numbers are opaque and validated by the store.

use floe_store::Result;
use floe_store::limits::LIST_STREAMS_MAX;
use floe_store::op::{
    DescribeStream, GetRecords, GetRecordsOutput, GetShardIterator, ListStreams, ListStreamsOutput,
    StreamDescription, StreamSummary,
};

use crate::ops::Operations;

impl Operations {
    /// Returns a page of the streams of tables with our prefix. The store lists streams of all tables, so one page may
    /// need several requests.
    pub(crate) async fn list_streams(&self, input: ListStreams) -> Result<ListStreamsOutput> {
        input.validate()?;
        self.require_streams()?;
        let limit = input.limit.unwrap_or(LIST_STREAMS_MAX);
        let mut output = ListStreamsOutput::default();
        let mut request = input;
        loop {
            request.limit = Some(limit - output.streams.len());
            let page = self.read(|| self.client.list_streams(&request)).await?;
            let own = page.streams.into_iter().filter_map(|s| self.own_stream(s));
            output.streams.extend(own);
            output.last_arn = page.last_arn;
            if output.last_arn.is_none() || output.streams.len() == limit {
                return Ok(output);
            }
            request.start_after = output.last_arn.clone();
        }
    }

    fn own_stream(&self, stream: StreamSummary) -> Option<StreamSummary> {
        let table_name = self.client.names.without_prefix(&stream.table_name)?;
        Some(StreamSummary {
            table_name: table_name.to_owned(),
            ..stream
        })
    }

    pub(crate) async fn describe_stream(&self, input: DescribeStream) -> Result<StreamDescription> {
        self.require_streams()?;
        self.read(|| self.client.describe_stream(&input)).await
    }

    pub(crate) async fn get_shard_iterator(&self, input: GetShardIterator) -> Result<String> {
        self.require_streams()?;
        self.read(|| self.client.get_shard_iterator(&input)).await
    }

    pub(crate) async fn get_records(&self, input: GetRecords) -> Result<GetRecordsOutput> {
        self.require_streams()?;
        self.read(|| self.client.get_records(&input)).await
    }

    fn require_streams(&self) -> Result<()> {
        self.require(self.capabilities.streams, "change streams")
    }
}
