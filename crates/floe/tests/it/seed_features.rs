//! Examples from the documents on which models are based, for optional cargo features.

use floe::{Db, Error, Model};

async fn db(models: &[&'static floe::model::Schema]) -> Db {
    let db = Db::memory().unwrap();
    db.ensure_tables(models).await.unwrap();
    db
}

#[cfg(feature = "axum")]
mod per_request {
    use uuid::Uuid;

    use super::*;

    #[derive(Clone, Debug, PartialEq, Model)]
    struct Order {
        id: Uuid,
        product: String,
        quantity: i64,
    }

    fn coffee(n: u128) -> Order {
        Order {
            id: Uuid::from_u128(n),
            product: "coffee".to_owned(),
            quantity: 1,
        }
    }

    /// Each request runs in a transaction, which commits only if the handler succeeds.
    #[tokio::test]
    async fn per_request_transaction() {
        use axum::http::{Request, StatusCode};
        use axum::{Router, body::Body, routing::post};
        use floe::http::{RequestTx, TransactionLayer};
        use tower::ServiceExt;

        let db = db(&[Order::SCHEMA]).await;
        let order = async |tx: RequestTx| {
            tx.create(coffee(1))?;
            Ok::<_, Error>(StatusCode::CREATED)
        };
        let refuse = async |tx: RequestTx| {
            tx.create(coffee(2))?;
            Ok::<_, Error>(StatusCode::PAYMENT_REQUIRED)
        };
        let app = Router::new()
            .route("/order", post(order))
            .route("/refuse", post(refuse))
            .layer(TransactionLayer::new(db.clone()));
        let send = async |path: &str| {
            let request = Request::post(path).body(Body::empty()).unwrap();
            app.clone().oneshot(request).await.unwrap().status()
        };
        assert_eq!(send("/order").await, StatusCode::CREATED);
        assert_eq!(send("/order").await, StatusCode::CONFLICT);
        assert_eq!(send("/refuse").await, StatusCode::PAYMENT_REQUIRED);
        assert_eq!(db.scan::<Order>().all().await.unwrap().len(), 1);
    }
}

#[cfg(feature = "json-schema")]
mod schemas {
    use floe::model::Json;
    use floe::{ErrorKind, Tx};
    use serde_json::json;

    use super::*;

    #[derive(Clone, Debug, PartialEq, Model)]
    struct SchemaModel {
        #[model(key)]
        id: String,
        #[model(length(max = 2))]
        text: String,
        #[model(json_schema = r#"{
            "type": "object",
            "properties": {
                "str": {"type": "string"},
                "arr": {"type": "array", "items": {"type": "string"}}
            }
        }"#)]
        obj: Json,
    }

    #[tokio::test]
    async fn field_schema() {
        let db = db(&[SchemaModel::SCHEMA]).await;
        let create = async |tx: &Tx| {
            let (id, text) = ("mymodel".to_owned(), "12".to_owned());
            let obj = json!({"str": "a", "arr": ["b"]});
            tx.create(SchemaModel { id, text, obj }).map(drop)
        };
        db.transact(create).await.unwrap();
        let change = async |tx: &Tx| {
            let mut model = tx.get::<SchemaModel>("mymodel").await?.unwrap();
            assert!(model.text.set("123".to_owned()).is_err());
            assert!(model.obj.set(json!({"arr": [1]})).is_err());
            // A change inside a value is validated when the transaction commits.
            model.obj["str"] = json!([]);
            Ok::<_, Error>(())
        };
        let error = db.transact(change).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidField);
        assert_eq!(error.field(), Some("obj.str"));
    }
}
