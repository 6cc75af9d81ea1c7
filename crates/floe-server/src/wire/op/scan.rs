//! Scan.

use floe_store::Engine;
use floe_store::json::ValidationLayer;
use floe_store::op::{Scan, Segment};

use crate::wire::legacy::filter::Filters;
use crate::wire::{
    Int, PageMembers, RequestError, Result, Segments, Str, members, request_and_layer,
    return_capacity, write_item_hashed, write_page,
};

members! {
    Request<'a> {
        "ScanFilter" => scan_filter: Filters<'a>,
        ..segments: Segments<'a>,
        ..page: PageMembers<'a>,
    }
}

pub(crate) async fn handle(engine: &dyn Engine, body: &str) -> Result<Vec<u8>> {
    let (mut request, layer) = request_and_layer::<Request<'_>>(body)?;
    let scan_filter = request.scan_filter.as_ref();
    let filters = [("scanFilter", scan_filter)];
    request.page.check(&request.segments, &filters)?;
    let scan_filter = ("ScanFilter", scan_filter.is_some());
    request.page.check_unmixed(scan_filter, false, false)?;
    let table_name = request.page.table_name.take().unwrap_or_default();
    let scan = operation(request, &table_name, layer)?;
    let select = scan.select;
    let mut page = engine.scan(scan).await?;
    table_name.restore_names(&mut page.consumed);
    Ok(write_page(&page, select, write_item_hashed))
}

fn operation(request: Request<'_>, table_name: &str, layer: ValidationLayer) -> Result<Scan> {
    let mut page = request.page;
    let parameters = page.begin(request.scan_filter, layer)?;
    let mut parser = parameters.placeholders.parser();
    let selection = page.parse(&mut parser, parameters.filter, parameters.listed)?;
    let segment = segment(&request.segments)?;
    parser.finish()?;
    Ok(Scan {
        table_name: table_name.to_owned(),
        index_name: page.index_name.map(Str::into_owned),
        filter: selection.filter,
        projection: selection.projection,
        select: selection.select,
        limit: page.limit.map(Int::count),
        start_key: parameters.start_key,
        segment,
        consistent: page.consistent_read.unwrap_or(false),
        return_capacity: return_capacity(&page.return_capacity),
    })
}

/// Returns the segment. Both numbers must be given, or neither.
fn segment(segments: &Segments<'_>) -> Result<Option<Segment>> {
    match (segments.segment, segments.total_segments) {
        (Some(index), Some(total)) => Ok(Some(Segment {
            index: index.count(),
            total: total.count(),
        })),
        (None, None) => Ok(None),
        (Some(_), None) => Err(RequestError::validation(
            "The TotalSegments parameter is required but was not present in the request when Segment parameter is \
             present",
        )),
        (None, Some(_)) => Err(RequestError::validation(
            "The Segment parameter is required but was not present in the request when parameter TotalSegments is \
             present",
        )),
    }
}
