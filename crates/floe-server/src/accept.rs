//! The server: listens, gives each connection a place, and stops without losing what is under way.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use floe_store::BoxFuture;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::connection;
use crate::files;
use crate::http::{Handler, Responder};
use crate::limits::{BACKLOG, SOCKET_BYTES};
use crate::options::Options;
use crate::registry::Registry;
use crate::serve_error::ServeError;
use crate::service::Service;

/// How long accepting pauses after the system has refused a connection.
const PAUSE: Duration = Duration::from_millis(50);

/// A server that is bound to its address.
///
/// ```
/// use std::sync::Arc;
///
/// use floe_local::LocalEngine;
/// use floe_server::{Options, Server, Service};
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let engine = Arc::new(LocalEngine::memory()?);
/// let server = Server::bind(Options::new(), Service::new(engine.clone())).await?;
/// let running = server.spawn();
/// println!("point any AWS SDK to {}", running.url());
/// running.shutdown().await;
/// engine.close()?;
/// # Ok(())
/// # }
/// ```
pub struct Server<H = Service> {
    listener: TcpListener,
    address: SocketAddr,
    registry: Arc<Registry>,
    responder: Arc<Responder<H>>,
}

impl Server {
    /// As [`serve_until`](Self::serve_until), as code of this crate: a program that is compiled for size serves no slower by it.
    pub fn serve<'s>(self, stop: BoxFuture<'s, ()>) -> BoxFuture<'s, ()> {
        Box::pin(self.serve_until(stop))
    }
}

impl<H: Handler> Server<H> {
    /// Binds the address of the options, without answering anybody yet.
    ///
    /// # Errors
    ///
    /// [`ServeError::Exposed`] if other machines could reach it and everybody would be let in,
    /// [`ServeError::Bind`] if the address cannot be had.
    pub async fn bind(options: Options, handler: H) -> Result<Self, ServeError> {
        let listen = options.listen;
        options.check()?;
        let failed = |source| ServeError::Bind { listen, source };
        let listener = bind(listen).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let mut limits = options.limits.clone();
        limits.connections_max = limits.connections_max.min(files::connections_max()).max(1);
        Ok(Self {
            listener,
            address,
            registry: Registry::new(limits),
            responder: Arc::new(Responder::new(&options, handler)),
        })
    }

    /// Where it listens.
    pub const fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Answers until `stop` is ready; then takes no further requests, finishes those that are under way, and closes
    /// all connections.
    pub async fn serve_until(self, stop: impl Future<Output = ()>) {
        let watch = {
            let registry = Arc::clone(&self.registry);
            tokio::spawn(async move { registry.watch().await })
        };
        let registry = Arc::clone(&self.registry);
        tokio::select! {
            () = stop => {}
            () = self.accept() => {}
        }
        // The listener is closed: the system refuses those that come now.
        registry.drain().await;
        watch.abort();
    }

    /// Answers in the background.
    pub fn spawn(self) -> Running {
        let address = self.address;
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(async move {
            // A sender that is gone asks to stop as well.
            self.serve_until(async { drop(stopped.await) }).await;
        });
        Running {
            address,
            stop: Some(stop),
            task,
        }
    }

    async fn accept(self) {
        loop {
            let accepted = self.listener.accept().await;
            match accepted {
                Ok((stream, _)) => self.start(stream).await,
                Err(error) if is_of_one_client(&error) => {}
                // There are no more files, or no memory: somebody has to go first.
                Err(_) => {
                    self.registry.evict();
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    async fn start(&self, stream: TcpStream) {
        let place = self.registry.enter().await;
        // An answer goes out in one piece, which should not wait for another. Without it the connection is slow,
        // but works.
        drop(stream.set_nodelay(true));
        connection::spawn(stream, place, Arc::clone(&self.responder));
    }
}

/// Listens, with little memory of the system for each connection to come.
fn bind(listen: SocketAddr) -> io::Result<TcpListener> {
    let socket = match listen {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // A server that is started again gets its address back at once. Elsewhere this would let others take it.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.set_send_buffer_size(SOCKET_BYTES)?;
    socket.set_recv_buffer_size(SOCKET_BYTES)?;
    socket.bind(listen)?;
    socket.listen(BACKLOG)
}

/// Whether accepting failed because of the one who came, and not because of this machine.
fn is_of_one_client(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::Interrupted
    )
}

/// A server that answers in the background, until it is dropped.
#[derive(Debug)]
pub struct Running {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl Running {
    /// Where it listens.
    pub const fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Where it listens, as the endpoint of an AWS SDK.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Stops: finishes what is under way and closes all connections.
    pub async fn shutdown(mut self) {
        // Dropping the sender stops it.
        drop(self.stop.take());
        drop((&mut self.task).await);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.stop.take());
    }
}
