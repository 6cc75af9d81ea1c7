//! Passes messages on between a client and the server, one request at a time, and cuts where it is told to.

use std::io;
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::message::Message;
use super::{Control, Cut};

/// Takes connections until it is dropped, and all of them with it.
pub(super) async fn accept(listener: TcpListener, control: Arc<Control>) {
    let mut connections = JoinSet::new();
    // A connection that could not be taken is the client's to make again.
    loop {
        if let Ok((client, _)) = listener.accept().await {
            connections.spawn(serve(client, control.clone()));
        }
        while connections.try_join_next().is_some() {}
    }
}

/// Serves a connection to its end. What breaks it is what a client sees of it.
async fn serve(mut client: TcpStream, control: Arc<Control>) {
    let mut server = None;
    while let Ok(Some(request)) = Message::read(&mut client).await {
        let goes_on = pass(&mut client, &mut server, &request, &control).await;
        if !goes_on.unwrap_or(false) {
            return;
        }
    }
}

/// Passes a request on and its answer back; `false` when the connection is cut.
async fn pass(
    client: &mut TcpStream,
    server: &mut Option<TcpStream>,
    request: &Message,
    control: &Control,
) -> io::Result<bool> {
    match control.decide(request.operation()) {
        None => {
            let answer = ask(server, request, control).await?;
            client.write_all(&answer.bytes).await?;
            return Ok(true);
        }
        Some(Cut::Before) => {}
        Some(Cut::After) => drop(ask(server, request, control).await?),
        Some(Cut::Inside) => {
            let answer = ask(server, request, control).await?;
            client.write_all(answer.half()).await?;
            client.flush().await?;
        }
        Some(Cut::Silence) => {
            let _held = control.hold();
            let _answer = ask(server, request, control).await?;
            given_up(client).await;
        }
        Some(Cut::Late) => {
            let _held = control.hold();
            given_up(client).await;
            drop(ask(server, request, control).await?);
        }
    }
    Ok(false)
}

/// The server's answer, over a connection that is made when it is first needed.
async fn ask(
    server: &mut Option<TcpStream>,
    request: &Message,
    control: &Control,
) -> io::Result<Message> {
    let server = match server {
        Some(server) => server,
        None => server.insert(TcpStream::connect(control.server).await?),
    };
    server.write_all(&request.bytes).await?;
    let answer = Message::read(server).await?;
    answer.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}

/// Waits until the client has closed the connection.
async fn given_up(client: &mut TcpStream) {
    let mut rest = [0; 64];
    while client.read(&mut rest).await.is_ok_and(|bytes| bytes > 0) {}
}
