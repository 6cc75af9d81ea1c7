//! The server: accepts connections, assigns each a slot, and shuts down gracefully.

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

/// Pause after the system failed to accept a connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

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
    /// Same as [`serve_until`](Self::serve_until), but compiled in this crate, so that a caller that is optimized for
    /// size serves just as fast.
    pub fn serve<'s>(self, stop: BoxFuture<'s, ()>) -> BoxFuture<'s, ()> {
        Box::pin(self.serve_until(stop))
    }
}

impl<H: Handler> Server<H> {
    /// Binds the address of the options. Serving starts with [`serve_until`](Self::serve_until) or
    /// [`spawn`](Self::spawn).
    ///
    /// # Errors
    ///
    /// [`ServeError::Exposed`] if other machines can reach the address and no keys are required, [`ServeError::Bind`]
    /// if the address cannot be bound.
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

    /// Returns the address on which the server listens.
    pub const fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stop` is ready, then accepts no further requests, finishes those in progress, and closes all
    /// connections.
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
        // The listener is closed: the system rejects new connections.
        registry.drain().await;
        watch.abort();
    }

    /// Serves in the background.
    pub fn spawn(self) -> ServerHandle {
        let address = self.address;
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(async move {
            // Dropping the sender stops the server too.
            self.serve_until(async { drop(stopped.await) }).await;
        });
        ServerHandle {
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
                Err(error) if is_client_error(&error) => {}
                // Out of file descriptors or memory: close another connection first.
                Err(_) => {
                    self.registry.evict();
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    async fn start(&self, stream: TcpStream) {
        let slot = self.registry.acquire_slot().await;
        // A response is written at once and should not wait for more data. If this fails, the connection works, but
        // slowly.
        drop(stream.set_nodelay(true));
        connection::spawn(stream, slot, Arc::clone(&self.responder));
    }
}

/// Listens, with small socket buffers for each connection.
fn bind(listen: SocketAddr) -> io::Result<TcpListener> {
    let socket = match listen {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // Lets a restarted server bind its address at once. On other systems it would let other programs take the address.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.set_send_buffer_size(SOCKET_BYTES)?;
    socket.set_recv_buffer_size(SOCKET_BYTES)?;
    socket.bind(listen)?;
    socket.listen(BACKLOG)
}

/// Whether accepting failed because of the client and not because of this machine.
fn is_client_error(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::Interrupted
    )
}

/// Handle of a server that runs in the background. The server stops when the handle is dropped.
#[derive(Debug)]
pub struct ServerHandle {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl ServerHandle {
    /// Returns the address on which the server listens.
    pub const fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Returns the address as an endpoint URL for an AWS SDK.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Stops the server: finishes requests in progress and closes all connections.
    pub async fn shutdown(mut self) {
        // Dropping the sender stops the server.
        drop(self.stop.take());
        drop((&mut self.task).await);
    }
}

impl Drop for ServerHandle {
    fn drop(&mut self) {
        drop(self.stop.take());
    }
}
