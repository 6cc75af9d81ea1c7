//! A library as a graph: authors, articles, tags and reading lists, their relations and indexes.
//!
//! An article is deleted with its author. A tag cannot be deleted while an article has it. Deleted articles disappear
//! from reading lists. Articles are found by words of their titles, authors by their unique address.
//!
//! `cargo run -p floe-examples --bin library`

#![expect(clippy::print_stdout, reason = "the program prints its results")]

use floe::graph::{Emit, GraphSchema, Include, MapIndex, OnDelete, Relation};
use floe::{Db, Entity, Error, ErrorKind};
use floe_examples::{Fallible, arguments, claim};

const USAGE: &str = "\
Usage: cargo run -p floe-examples --bin library

A library as a graph: entities, ordered relations, indexes computed by functions, in memory.";

#[derive(Clone, Debug, PartialEq, Entity)]
struct Author {
    id: String,
    name: String,
    email: String,
}

#[derive(Clone, Debug, PartialEq, Entity)]
struct Article {
    id: String,
    title: String,
    year: i64,
}

#[derive(Clone, Debug, PartialEq, Entity)]
struct Tag {
    #[entity(id)]
    name: String,
}

#[derive(Clone, Debug, PartialEq, Entity)]
struct ReadingList {
    id: String,
    owner: String,
}

/// The articles of an author, in listing order.
enum Wrote {}

impl Relation for Wrote {
    const PREDICATE: &'static str = "wrote";
    type Subject = Author;
    type Object = Article;
    type Attributes = ();
    const OWNS: bool = true;
}

/// The tags of an article.
enum Tagged {}

impl Relation for Tagged {
    const PREDICATE: &'static str = "tagged";
    type Subject = Article;
    type Object = Tag;
    type Attributes = ();
    const ON_DELETE: OnDelete = OnDelete::Restrict;
}

/// The articles on a reading list, with the reason.
enum Recommends {}

#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
struct Reason {
    because: String,
}

impl Relation for Recommends {
    const PREDICATE: &'static str = "recommends";
    type Subject = ReadingList;
    type Object = Article;
    type Attributes = Reason;
}

/// Articles by the words of their titles.
enum ByWord {}

impl MapIndex for ByWord {
    type Of = Article;
    type Key = String;
    const NAME: &'static str = "by_word";

    fn map(article: &Article, emit: &mut Emit<String>) {
        let words = article.title.split_whitespace();
        words.for_each(|word| emit.key(word.to_lowercase()));
    }
}

/// Articles by year. Number keys sort numerically.
enum ByYear {}

impl MapIndex for ByYear {
    type Of = Article;
    type Key = i64;
    const NAME: &'static str = "by_year";

    fn map(article: &Article, emit: &mut Emit<i64>) {
        emit.key(article.year);
    }
}

/// Authors by their address.
enum ByEmail {}

impl MapIndex for ByEmail {
    type Of = Author;
    type Key = String;
    const NAME: &'static str = "by_email";
    const UNIQUE: bool = true;

    fn map(author: &Author, emit: &mut Emit<String>) {
        emit.key(author.email.to_lowercase());
    }
}

fn schema() -> GraphSchema {
    GraphSchema::new()
        .relation::<Wrote>()
        .relation::<Tagged>()
        .relation::<Recommends>()
        .index::<ByWord>()
        .index::<ByYear>()
        .index::<ByEmail>()
}

fn author(id: &str, email: &str) -> Author {
    Author {
        id: id.to_owned(),
        name: id.to_owned(),
        email: email.to_owned(),
    }
}

fn article(id: &str, title: &str, year: i64) -> Article {
    Article {
        id: id.to_owned(),
        title: title.to_owned(),
        year,
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Fallible {
    if arguments(USAGE, 0)?.is_none() {
        return Ok(());
    }
    let db = Db::memory()?.with_graph(schema());
    db.ensure_graph().await?;
    let graph = db.graph("library");

    // Creates an author, her articles and their tags in one commit.
    let ann = author("ann", "ann@example.com");
    let (ice, snow) = (
        article("a-1", "On drifting ice", 2019),
        article("a-2", "On old snow", 2024),
    );
    let cold = Tag {
        name: "cold".to_owned(),
    };
    db.transact(async |tx| {
        let graph = tx.graph("library");
        graph.create(&ann).await?;
        graph.create(&cold).await?;
        for article in [&ice, &snow] {
            graph.create(article).await?;
            graph.related::<Wrote>(&ann).link(article).await?;
            graph.related::<Tagged>(article).link(&cold).await?;
        }
        Ok::<_, Error>(())
    })
    .await?;

    // Moves the newest article to the front: one edge is written.
    graph.related::<Wrote>(&ann).move_to(1, 0).await?;
    let list = ReadingList {
        id: "l-1".to_owned(),
        owner: "bo".to_owned(),
    };
    graph.create(&list).await?;
    let because = Reason {
        because: "it melts".to_owned(),
    };
    let recommended = graph.related::<Recommends>(&list);
    recommended.link_with(&ice, &because).await?;

    // Loads the author with related entities, two levels deep.
    let follow = [Include::relation::<Wrote>().with(Include::relation::<Tagged>())];
    let loaded = graph
        .include(&ann, &follow)
        .await?
        .ok_or("the author exists")?;
    for article in loaded.objects::<Wrote>() {
        let tags = article.values::<Tagged>()?.into_iter().map(|tag| tag.name);
        let title = article.entity::<Article>()?.title;
        println!(
            "{} wrote {title:?}, about {}",
            ann.name,
            tags.collect::<Vec<_>>().join(", ")
        );
    }
    claim(
        loaded.values::<Wrote>()? == [snow.clone(), ice.clone()],
        "in the new order",
    )?;

    // Finds articles by a word, by a range of years, and by referrer.
    let found = graph.find::<ByWord>().prefix("drift").load().await?;
    claim(found == [ice.clone()], "found by a prefix of a word")?;
    let recent = graph.find::<ByYear>().range(&2020..).load().await?;
    claim(recent == [snow.clone()], "found by a range of years")?;
    let lists = graph.referrers(&ice).of::<Recommends>().await?;
    claim(lists.len() == 1, "found by referrer")?;

    // Two authors cannot have the same address, and a tag in use cannot be deleted.
    let refused = graph.create(&author("bo", "Ann@Example.com")).await;
    let error = refused.err().ok_or("the address is taken")?;
    claim(error.kind() == ErrorKind::Conflict, "a unique key")?;
    println!("rejected: {error}");
    let error = graph.delete(&cold).await.err().ok_or("the tag is in use")?;
    claim(error.kind() == ErrorKind::Restricted, "a restriction")?;
    println!("rejected: {error}");

    // Changes an entity with optimistic locking: a conflict runs the function again.
    let changed = graph
        .modify::<Article>("a-1", |article| article.year += 1)
        .await?;
    claim(changed.year == 2020, "a change")?;

    // Deletes the author with her articles, their edges and their index entries.
    let deleted = graph.delete(&ann).await?;
    println!(
        "deleted {} entities and {} edges",
        deleted.entities, deleted.edges
    );
    claim(
        recommended.keys().await?.is_empty(),
        "nothing is recommended any longer",
    )?;
    claim(
        graph.find::<ByWord>().keys().await?.is_empty(),
        "no article is found any longer",
    )?;
    graph.delete(&cold).await?;
    claim(
        graph.check().await?.differences.is_empty(),
        "the tables are consistent",
    )?;
    println!("the three tables are consistent");
    Ok(())
}
