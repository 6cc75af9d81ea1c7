//! Forwards messages between a client and the server, one request at a time, and cuts connections as decided.

use std::io;
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::message::Message;
use super::{Control, Cut};

/// Accepts connections until the future is dropped, which closes all of them.
pub(super) async fn accept(listener: TcpListener, control: Arc<Control>) {
    let mut connections = JoinSet::new();
    // After a failed accept, the client connects again.
    loop {
        if let Ok((client, _)) = listener.accept().await {
            connections.spawn(serve(client, control.clone()));
        }
        while connections.try_join_next().is_some() {}
    }
}

/// Serves a connection until it ends. An I/O error closes the connection, which the client observes.
async fn serve(mut client: TcpStream, control: Arc<Control>) {
    let mut server = None;
    while let Ok(Some(request)) = Message::read(&mut client).await {
        let stays_open = pass(&mut client, &mut server, &request, &control).await;
        if !stays_open.unwrap_or(false) {
            return;
        }
    }
}

/// Forwards a request and returns its response to the client. Returns `false` if the connection was cut.
async fn pass(
    client: &mut TcpStream,
    server: &mut Option<TcpStream>,
    request: &Message,
    control: &Control,
) -> io::Result<bool> {
    match control.decide(request.operation()) {
        None => {
            let response = exchange(server, request, control).await?;
            client.write_all(&response.bytes).await?;
            return Ok(true);
        }
        Some(Cut::Before) => {}
        Some(Cut::After) => drop(exchange(server, request, control).await?),
        Some(Cut::Inside) => {
            let response = exchange(server, request, control).await?;
            client.write_all(response.half()).await?;
            client.flush().await?;
        }
        Some(Cut::Silence) => {
            let _held = control.hold();
            let _response = exchange(server, request, control).await?;
            wait_for_close(client).await;
        }
        Some(Cut::Late) => {
            let _held = control.hold();
            wait_for_close(client).await;
            drop(exchange(server, request, control).await?);
        }
    }
    Ok(false)
}

/// Sends a request to the server, connecting on the first use, and returns the response.
async fn exchange(
    server: &mut Option<TcpStream>,
    request: &Message,
    control: &Control,
) -> io::Result<Message> {
    let server = match server {
        Some(server) => server,
        None => server.insert(TcpStream::connect(control.server).await?),
    };
    server.write_all(&request.bytes).await?;
    let response = Message::read(server).await?;
    response.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}

/// Waits until the client has closed the connection.
async fn wait_for_close(client: &mut TcpStream) {
    let mut rest = [0; 64];
    while client.read(&mut rest).await.is_ok_and(|bytes| bytes > 0) {}
}
