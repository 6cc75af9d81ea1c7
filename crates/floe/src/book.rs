//! The chapters of the book in `docs/`, whose programs are compiled and run as doc tests.

macro_rules! chapters {
    ($($(#[$needs:meta])* $name:ident $path:literal;)*) => {$(
        $(#[$needs])*
        #[doc = include_str!(concat!("../../../docs/", $path))]
        struct $name;
    )*};
}

chapters! {
    Introduction "introduction.md";
    TenMinutes "ten-minutes.md";
    Models "guides/models.md";
    Events "guides/events.md";
    Graph "guides/graph.md";
    Registry "guides/registry.md";
    Changes "guides/changes.md";
    OneCommit "guides/one-commit.md";
    FromDataModelingLibrary "moving/data-modeling-library.md";
    FromEarlierDataModelingLibrary "moving/data-modeling-library-earlier.md";
    FromRynoDb "moving/rynodb.md";
    FromDynamoStore "moving/dynamostore.md";
    FromKlayers "moving/klayers.md";
    #[cfg(feature = "aws")]
    Production "production.md";
    Telemetry "telemetry.md";
    Testing "testing.md";
    Scaling "scaling.md";
}
