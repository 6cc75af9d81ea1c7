//! Commits that exceed a deadline or a limit of DynamoDB: refused before anything is sent, with what to do.

use std::sync::Arc;
use std::time::Duration;

use super::no_time::NoTime;
use super::stage;
use super::support::{Player, player};
use floe::{Db, Error, ErrorKind, Model, Tx};
use floe_store::Env;
use floe_testkit::record::RecordingEngine;
use floe_testkit::time::TestEnv;

struct World {
    db: Db,
    recording: Arc<RecordingEngine>,
    test: TestEnv,
}

async fn world() -> World {
    let test = TestEnv::seeded(1);
    let engine = stage::engine_at(test.env.clone());
    let recording = Arc::new(RecordingEngine::new(engine));
    let env = Env::manual(test.clock.clone(), 2);
    let db = Db::with_parts(recording.clone(), env, Arc::new(NoTime));
    db.ensure_tables(&[Player::SCHEMA, Wide::SCHEMA])
        .await
        .unwrap();
    for id in ["a", "b"] {
        let create = async |tx: &Tx| tx.create(player(id, 1)).map(drop);
        db.transact(create).await.unwrap();
    }
    recording.take();
    World {
        db,
        recording,
        test,
    }
}

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test]
async fn deadline_is_checked_before_the_commit_is_sent() {
    let world = world().await;
    let body = async |tx: &Tx| {
        tx.get::<Player>("a").await?.unwrap().level += 1;
        world.test.advance(2 * SECOND);
        Ok::<_, Error>(())
    };
    let options = world.db.tx().deadline(SECOND).label("slow");
    let error = options.run(body).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Deadline, "{error}");
    assert_eq!(error.attempts(), Some(1));
    assert_eq!(
        error.to_string(),
        "the deadline passed before the commit was sent and nothing was written; set a later deadline or shorten the \
         body: attempts=1 label=slow"
    );
    assert_eq!(world.recording.take().len(), 1);
}

#[tokio::test]
async fn body_that_only_reads_may_end_after_the_deadline() {
    let world = world().await;
    let body = async |tx: &Tx| {
        let level = *tx.get::<Player>("a").await?.unwrap().level;
        world.test.advance(2 * SECOND);
        Ok::<_, Error>(level)
    };
    let run = world.db.tx().deadline(SECOND).run(body).await;
    assert_eq!(run.unwrap(), 1);
    let verified = world.db.tx().deadline(SECOND).verified().run(body).await;
    assert_eq!(verified.unwrap_err().kind(), ErrorKind::Deadline);
}

#[derive(Clone, Debug, PartialEq, Model)]
struct Wide {
    #[model(key)]
    id: String,
    f000: i64,
    f001: i64,
    f002: i64,
    f003: i64,
    f004: i64,
    f005: i64,
    f006: i64,
    f007: i64,
    f008: i64,
    f009: i64,
    f010: i64,
    f011: i64,
    f012: i64,
    f013: i64,
    f014: i64,
    f015: i64,
    f016: i64,
    f017: i64,
    f018: i64,
    f019: i64,
    f020: i64,
    f021: i64,
    f022: i64,
    f023: i64,
    f024: i64,
    f025: i64,
    f026: i64,
    f027: i64,
    f028: i64,
    f029: i64,
    f030: i64,
    f031: i64,
    f032: i64,
    f033: i64,
    f034: i64,
    f035: i64,
    f036: i64,
    f037: i64,
    f038: i64,
    f039: i64,
    f040: i64,
    f041: i64,
    f042: i64,
    f043: i64,
    f044: i64,
    f045: i64,
    f046: i64,
    f047: i64,
    f048: i64,
    f049: i64,
    f050: i64,
    f051: i64,
    f052: i64,
    f053: i64,
    f054: i64,
    f055: i64,
    f056: i64,
    f057: i64,
    f058: i64,
    f059: i64,
    f060: i64,
    f061: i64,
    f062: i64,
    f063: i64,
    f064: i64,
    f065: i64,
    f066: i64,
    f067: i64,
    f068: i64,
    f069: i64,
    f070: i64,
    f071: i64,
    f072: i64,
    f073: i64,
    f074: i64,
    f075: i64,
    f076: i64,
    f077: i64,
    f078: i64,
    f079: i64,
    f080: i64,
    f081: i64,
    f082: i64,
    f083: i64,
    f084: i64,
    f085: i64,
    f086: i64,
    f087: i64,
    f088: i64,
    f089: i64,
    f090: i64,
    f091: i64,
    f092: i64,
    f093: i64,
    f094: i64,
    f095: i64,
    f096: i64,
    f097: i64,
    f098: i64,
    f099: i64,
    f100: i64,
    f101: i64,
    f102: i64,
    f103: i64,
    f104: i64,
    f105: i64,
    f106: i64,
    f107: i64,
    f108: i64,
    f109: i64,
    f110: i64,
    f111: i64,
    f112: i64,
    f113: i64,
    f114: i64,
    f115: i64,
    f116: i64,
    f117: i64,
    f118: i64,
    f119: i64,
    f120: i64,
    f121: i64,
    f122: i64,
    f123: i64,
    f124: i64,
    f125: i64,
    f126: i64,
    f127: i64,
    f128: i64,
    f129: i64,
    f130: i64,
    f131: i64,
    f132: i64,
    f133: i64,
    f134: i64,
    f135: i64,
    f136: i64,
    f137: i64,
    f138: i64,
    f139: i64,
    f140: i64,
    f141: i64,
    f142: i64,
    f143: i64,
    f144: i64,
    f145: i64,
    f146: i64,
    f147: i64,
    f148: i64,
    f149: i64,
    f150: i64,
    f151: i64,
    f152: i64,
    f153: i64,
    f154: i64,
    f155: i64,
    f156: i64,
    f157: i64,
    f158: i64,
    f159: i64,
}

fn wide(id: &str) -> Wide {
    Wide {
        id: id.to_owned(),
        f000: 1,
        f001: 1,
        f002: 1,
        f003: 1,
        f004: 1,
        f005: 1,
        f006: 1,
        f007: 1,
        f008: 1,
        f009: 1,
        f010: 1,
        f011: 1,
        f012: 1,
        f013: 1,
        f014: 1,
        f015: 1,
        f016: 1,
        f017: 1,
        f018: 1,
        f019: 1,
        f020: 1,
        f021: 1,
        f022: 1,
        f023: 1,
        f024: 1,
        f025: 1,
        f026: 1,
        f027: 1,
        f028: 1,
        f029: 1,
        f030: 1,
        f031: 1,
        f032: 1,
        f033: 1,
        f034: 1,
        f035: 1,
        f036: 1,
        f037: 1,
        f038: 1,
        f039: 1,
        f040: 1,
        f041: 1,
        f042: 1,
        f043: 1,
        f044: 1,
        f045: 1,
        f046: 1,
        f047: 1,
        f048: 1,
        f049: 1,
        f050: 1,
        f051: 1,
        f052: 1,
        f053: 1,
        f054: 1,
        f055: 1,
        f056: 1,
        f057: 1,
        f058: 1,
        f059: 1,
        f060: 1,
        f061: 1,
        f062: 1,
        f063: 1,
        f064: 1,
        f065: 1,
        f066: 1,
        f067: 1,
        f068: 1,
        f069: 1,
        f070: 1,
        f071: 1,
        f072: 1,
        f073: 1,
        f074: 1,
        f075: 1,
        f076: 1,
        f077: 1,
        f078: 1,
        f079: 1,
        f080: 1,
        f081: 1,
        f082: 1,
        f083: 1,
        f084: 1,
        f085: 1,
        f086: 1,
        f087: 1,
        f088: 1,
        f089: 1,
        f090: 1,
        f091: 1,
        f092: 1,
        f093: 1,
        f094: 1,
        f095: 1,
        f096: 1,
        f097: 1,
        f098: 1,
        f099: 1,
        f100: 1,
        f101: 1,
        f102: 1,
        f103: 1,
        f104: 1,
        f105: 1,
        f106: 1,
        f107: 1,
        f108: 1,
        f109: 1,
        f110: 1,
        f111: 1,
        f112: 1,
        f113: 1,
        f114: 1,
        f115: 1,
        f116: 1,
        f117: 1,
        f118: 1,
        f119: 1,
        f120: 1,
        f121: 1,
        f122: 1,
        f123: 1,
        f124: 1,
        f125: 1,
        f126: 1,
        f127: 1,
        f128: 1,
        f129: 1,
        f130: 1,
        f131: 1,
        f132: 1,
        f133: 1,
        f134: 1,
        f135: 1,
        f136: 1,
        f137: 1,
        f138: 1,
        f139: 1,
        f140: 1,
        f141: 1,
        f142: 1,
        f143: 1,
        f144: 1,
        f145: 1,
        f146: 1,
        f147: 1,
        f148: 1,
        f149: 1,
        f150: 1,
        f151: 1,
        f152: 1,
        f153: 1,
        f154: 1,
        f155: 1,
        f156: 1,
        f157: 1,
        f158: 1,
        f159: 1,
    }
}

async fn create_wide(world: &World) {
    let create = async |tx: &Tx| tx.create(wide("w")).map(drop);
    world.db.transact(create).await.unwrap();
    world.recording.take();
}

#[tokio::test]
async fn condition_on_too_many_fields_is_refused_before_it_is_sent() {
    let world = world().await;
    create_wide(&world).await;
    for beside in [false, true] {
        let body = async |tx: &Tx| {
            let mut row = tx.get::<Wide>("w").await?.unwrap();
            let all = row.to_model();
            row.f000.set(all.f159 + 1)?;
            drop(row);
            if beside {
                tx.get::<Player>("a").await?.unwrap().level += 1;
            }
            Ok::<_, Error>(())
        };
        let error = world.db.transact(body).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}");
        assert_eq!(error.items().len(), 1);
        let text = error.to_string();
        assert!(
            text.starts_with(
                "the commit depends on too many fields of one item; read fewer of them"
            ),
            "{text}"
        );
        for fact in [
            "model=Wide",
            "key=\"w\"",
            "fields=160",
            "operators=319",
            "max=298",
        ] {
            assert!(text.contains(fact), "{fact}: {text}");
        }
        let sent = world.recording.take();
        assert!(
            sent.iter().all(|sent| sent.starts_with("GetItem")),
            "{sent:?}"
        );
    }
}

#[tokio::test]
async fn condition_on_many_fields_within_the_limits_is_sent() {
    let world = world().await;
    create_wide(&world).await;
    let body = async |tx: &Tx| {
        let mut row = tx.get::<Wide>("w").await?.unwrap();
        row.f000 += 1;
        row.f001 += 1;
        row.f002 += 1;
        row.f003 += 1;
        row.f004 += 1;
        row.f005 += 1;
        row.f006 += 1;
        row.f007 += 1;
        row.f008 += 1;
        row.f009 += 1;
        row.f010 += 1;
        row.f011 += 1;
        row.f012 += 1;
        row.f013 += 1;
        row.f014 += 1;
        row.f015 += 1;
        row.f016 += 1;
        row.f017 += 1;
        row.f018 += 1;
        row.f019 += 1;
        row.f020 += 1;
        row.f021 += 1;
        row.f022 += 1;
        row.f023 += 1;
        row.f024 += 1;
        row.f025 += 1;
        row.f026 += 1;
        row.f027 += 1;
        row.f028 += 1;
        row.f029 += 1;
        row.f030 += 1;
        row.f031 += 1;
        row.f032 += 1;
        row.f033 += 1;
        row.f034 += 1;
        row.f035 += 1;
        row.f036 += 1;
        row.f037 += 1;
        row.f038 += 1;
        row.f039 += 1;
        row.f040 += 1;
        row.f041 += 1;
        row.f042 += 1;
        row.f043 += 1;
        row.f044 += 1;
        row.f045 += 1;
        row.f046 += 1;
        row.f047 += 1;
        row.f048 += 1;
        row.f049 += 1;
        row.f050 += 1;
        row.f051 += 1;
        row.f052 += 1;
        row.f053 += 1;
        row.f054 += 1;
        row.f055 += 1;
        row.f056 += 1;
        row.f057 += 1;
        row.f058 += 1;
        row.f059 += 1;
        row.f060 += 1;
        row.f061 += 1;
        row.f062 += 1;
        row.f063 += 1;
        row.f064 += 1;
        row.f065 += 1;
        row.f066 += 1;
        row.f067 += 1;
        row.f068 += 1;
        row.f069 += 1;
        row.f070 += 1;
        row.f071 += 1;
        row.f072 += 1;
        row.f073 += 1;
        row.f074 += 1;
        row.f075 += 1;
        row.f076 += 1;
        row.f077 += 1;
        row.f078 += 1;
        row.f079 += 1;
        row.f080 += 1;
        row.f081 += 1;
        row.f082 += 1;
        row.f083 += 1;
        row.f084 += 1;
        row.f085 += 1;
        row.f086 += 1;
        row.f087 += 1;
        row.f088 += 1;
        row.f089 += 1;
        row.f090 += 1;
        row.f091 += 1;
        row.f092 += 1;
        row.f093 += 1;
        row.f094 += 1;
        row.f095 += 1;
        row.f096 += 1;
        row.f097 += 1;
        row.f098 += 1;
        row.f099 += 1;
        row.f100 += 1;
        row.f101 += 1;
        row.f102 += 1;
        row.f103 += 1;
        row.f104 += 1;
        row.f105 += 1;
        row.f106 += 1;
        row.f107 += 1;
        row.f108 += 1;
        row.f109 += 1;
        row.f110 += 1;
        row.f111 += 1;
        row.f112 += 1;
        row.f113 += 1;
        row.f114 += 1;
        row.f115 += 1;
        row.f116 += 1;
        row.f117 += 1;
        row.f118 += 1;
        row.f119 += 1;
        row.f120 += 1;
        row.f121 += 1;
        row.f122 += 1;
        row.f123 += 1;
        row.f124 += 1;
        row.f125 += 1;
        row.f126 += 1;
        row.f127 += 1;
        row.f128 += 1;
        row.f129 += 1;
        row.f130 += 1;
        row.f131 += 1;
        row.f132 += 1;
        row.f133 += 1;
        row.f134 += 1;
        row.f135 += 1;
        row.f136 += 1;
        row.f137 += 1;
        row.f138 += 1;
        row.f139 += 1;
        Ok::<_, Error>(())
    };
    world.db.transact(body).await.unwrap();
}

#[tokio::test]
async fn update_of_too_many_fields_is_refused_before_it_is_sent() {
    let world = world().await;
    let huge = Catalog::new("c", 1);
    world.db.ensure_tables(&[Catalog::SCHEMA]).await.unwrap();
    let create = async |tx: &Tx| tx.create(huge.clone()).map(drop);
    world.db.transact(create).await.unwrap();
    world.recording.take();
    let body = async |tx: &Tx| {
        let mut row = tx.get::<Catalog>("c").await?.unwrap();
        row.overwrite_all(2)
    };
    let error = world.db.transact(body).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}");
    let text = error.to_string();
    assert!(
        text.starts_with("the commit changes too many fields of one item; change fewer of them"),
        "{text}"
    );
    for fact in ["model=Catalog", "key=\"c\"", "max=4096"] {
        assert!(text.contains(fact), "{fact}: {text}");
    }
    assert_eq!(world.recording.take().len(), 1);
}

/// A model with this many fields of one type.
macro_rules! catalog {
    ($($field:ident)*) => {
        #[derive(Clone, Debug, PartialEq, Model)]
        struct Catalog {
            #[model(key)]
            id: String,
            $($field: i64,)*
        }

        impl Catalog {
            fn new(id: &str, value: i64) -> Self {
                Self { id: id.to_owned(), $($field: value,)* }
            }
        }

        impl CatalogRow<'_> {
            fn overwrite_all(&mut self, value: i64) -> Result<(), Error> {
                $(self.$field.overwrite(value)?;)*
                Ok(())
            }
        }
    };
}

catalog! {
    c000 c001 c002 c003 c004 c005 c006 c007 c008 c009
    c010 c011 c012 c013 c014 c015 c016 c017 c018 c019
    c020 c021 c022 c023 c024 c025 c026 c027 c028 c029
    c030 c031 c032 c033 c034 c035 c036 c037 c038 c039
    c040 c041 c042 c043 c044 c045 c046 c047 c048 c049
    c050 c051 c052 c053 c054 c055 c056 c057 c058 c059
    c060 c061 c062 c063 c064 c065 c066 c067 c068 c069
    c070 c071 c072 c073 c074 c075 c076 c077 c078 c079
    c080 c081 c082 c083 c084 c085 c086 c087 c088 c089
    c090 c091 c092 c093 c094 c095 c096 c097 c098 c099
    c100 c101 c102 c103 c104 c105 c106 c107 c108 c109
    c110 c111 c112 c113 c114 c115 c116 c117 c118 c119
    c120 c121 c122 c123 c124 c125 c126 c127 c128 c129
    c130 c131 c132 c133 c134 c135 c136 c137 c138 c139
    c140 c141 c142 c143 c144 c145 c146 c147 c148 c149
    c150 c151 c152 c153 c154 c155 c156 c157 c158 c159
    c160 c161 c162 c163 c164 c165 c166 c167 c168 c169
    c170 c171 c172 c173 c174 c175 c176 c177 c178 c179
    c180 c181 c182 c183 c184 c185 c186 c187 c188 c189
    c190 c191 c192 c193 c194 c195 c196 c197 c198 c199
    c200 c201 c202 c203 c204 c205 c206 c207 c208 c209
    c210 c211 c212 c213 c214 c215 c216 c217 c218 c219
    c220 c221 c222 c223 c224 c225 c226 c227 c228 c229
    c230 c231 c232 c233 c234 c235 c236 c237 c238 c239
    c240 c241 c242 c243 c244 c245 c246 c247 c248 c249
    c250 c251 c252 c253 c254 c255 c256 c257 c258 c259
    c260 c261 c262 c263 c264 c265 c266 c267 c268 c269
    c270 c271 c272 c273 c274 c275 c276 c277 c278 c279
    c280 c281 c282 c283 c284 c285 c286 c287 c288 c289
    c290 c291 c292 c293 c294 c295 c296 c297 c298 c299
}
