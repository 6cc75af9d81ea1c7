//! A simulation in which the test owns time and scheduling: tasks run until none is ready, then the clock advances to
//! the next sleeper. The engine yields before and after each request.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use floe::Db;
use floe::db::Timer;
use floe_store::env::SeededRandom;
use floe_store::{BoxFuture, Engine, Result, Timestamp, each_operation, forward_to};
use floe_testkit::fault::{FaultEngine, Faults};
use floe_testkit::model::ModelEngine;
use floe_testkit::time::TestEnv;

/// A future that is ready at its second poll.
#[derive(Default)]
pub(crate) struct Pause(bool);

impl Future for Pause {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if std::mem::replace(&mut self.0, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

/// The wakers of sleeping tasks, by the time they wait for.
#[derive(Default)]
struct Sleepers(Mutex<BTreeMap<(Timestamp, u64), Waker>>);

/// A timer on simulated time.
struct SimTimer {
    test: TestEnv,
    sleepers: Arc<Sleepers>,
    number: AtomicU64,
}

struct Sleep {
    test: TestEnv,
    sleepers: Arc<Sleepers>,
    key: (Timestamp, u64),
}

impl Timer for SimTimer {
    fn sleep(&self, duration: Duration) -> BoxFuture<'_, ()> {
        let number = self.number.fetch_add(1, Ordering::Relaxed);
        Box::pin(Sleep {
            test: self.test.clone(),
            sleepers: self.sleepers.clone(),
            key: (self.test.now().plus(duration), number),
        })
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.test.now() >= self.key.0 {
            return Poll::Ready(());
        }
        let mut sleepers = self.sleepers.0.lock().unwrap();
        sleepers.insert(self.key, context.waker().clone());
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        self.sleepers.0.lock().unwrap().remove(&self.key);
    }
}

/// An engine that wraps another one, yields before and after each request, and counts requests.
pub(crate) struct Turns {
    inner: Arc<dyn Engine>,
    random: SeededRandom,
    pub(crate) requests: AtomicU64,
}

impl Turns {
    async fn turn(&self) {
        for _ in 0..self.random.below(3) {
            Pause::default().await;
        }
    }
}

macro_rules! in_turns {
    ($($operation:ident($type:ty) -> $output:ty, $name:literal;)*) => {$(
        fn $operation(&self, input: $type) -> BoxFuture<'_, Result<$output>> {
            Box::pin(async move {
                self.turn().await;
                self.requests.fetch_add(1, Ordering::Relaxed);
                let output = self.inner.$operation(input).await;
                self.turn().await;
                output
            })
        }
    )*};
}

impl Engine for Turns {
    forward_to!(self.inner; basics);
    each_operation!(in_turns; all);
}

/// A task, and whether it is ready.
struct Task {
    future: Pin<Box<dyn Future<Output = ()>>>,
    bell: Arc<Bell>,
    is_stalled: bool,
}

struct Bell(AtomicBool);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// The simulation: tasks, clock and engine.
pub(crate) struct World {
    pub(crate) test: TestEnv,
    pub(crate) turns: Arc<Turns>,
    pub(crate) faults: Arc<FaultEngine>,
    pub(crate) db: Db,
    sleepers: Arc<Sleepers>,
    tasks: BTreeMap<usize, Task>,
    next_task: usize,
}

impl World {
    /// Creates a world with an empty engine and no faults.
    pub(crate) fn new(seed: u64) -> Self {
        Self::with_faults(seed, Faults::seeded(seed))
    }

    /// Creates a world with an empty engine. Faults begin when they are [resumed](FaultEngine::resume).
    pub(crate) fn with_faults(seed: u64, faults: Faults) -> Self {
        let test = TestEnv::seeded(seed);
        let model = Arc::new(ModelEngine::new(test.env.clone()));
        let turns = Arc::new(Turns {
            inner: model,
            random: SeededRandom::new(seed),
            requests: AtomicU64::new(0),
        });
        let faults = Arc::new(FaultEngine::new(turns.clone(), faults));
        faults.pause();
        let sleepers = Arc::new(Sleepers::default());
        let timer = Arc::new(SimTimer {
            test: test.clone(),
            sleepers: sleepers.clone(),
            number: AtomicU64::new(0),
        });
        let db = Db::with_parts(faults.clone(), test.env.clone(), timer);
        Self {
            test,
            turns,
            faults,
            db,
            sleepers,
            tasks: BTreeMap::new(),
            next_task: 0,
        }
    }

    /// Starts a task, which runs until it ends or is killed.
    pub(crate) fn spawn(&mut self, future: impl Future<Output = ()> + 'static) -> usize {
        let task = self.next_task;
        self.next_task += 1;
        let bell = Arc::new(Bell(AtomicBool::new(true)));
        let future = Box::pin(future);
        self.tasks.insert(
            task,
            Task {
                future,
                bell,
                is_stalled: false,
            },
        );
        task
    }

    /// Drops a task at its current point. Returns whether it was still running.
    pub(crate) fn kill(&mut self, task: usize) -> bool {
        self.tasks.remove(&task).is_some()
    }

    /// Whether a task is still running.
    pub(crate) fn runs(&self, task: usize) -> bool {
        self.tasks.contains_key(&task)
    }

    /// Stalls a task while time passes, or continues it.
    pub(crate) fn stall(&mut self, task: usize, is_stalled: bool) {
        self.tasks.get_mut(&task).unwrap().is_stalled = is_stalled;
    }

    /// Polls each ready task once. Returns whether there was one.
    pub(crate) fn turn(&mut self) -> bool {
        let ready: Vec<usize> = self
            .tasks
            .iter()
            .filter(|(_, task)| !task.is_stalled && task.bell.0.load(Ordering::SeqCst))
            .map(|(number, _)| *number)
            .collect();
        for number in &ready {
            let task = self.tasks.get_mut(number).unwrap();
            task.bell.0.store(false, Ordering::SeqCst);
            let waker = Waker::from(task.bell.clone());
            let polled = task.future.as_mut().poll(&mut Context::from_waker(&waker));
            if polled.is_ready() {
                self.tasks.remove(number);
            }
        }
        !ready.is_empty()
    }

    /// Polls tasks until none is ready.
    pub(crate) fn settle(&mut self) {
        for turn in 0.. {
            assert!(turn < 1_000_000, "tasks never settle");
            if !self.turn() {
                return;
            }
        }
    }

    /// Advances the clock to the next sleeper, if there is one before `end`.
    fn advance(&mut self, end: Timestamp) -> bool {
        let first = {
            let sleepers = self.sleepers.0.lock().unwrap();
            sleepers.first_key_value().map(|(key, _)| key.0)
        };
        let Some(moment) = first.filter(|moment| *moment <= end) else {
            return false;
        };
        self.test.advance_to(moment);
        let mut sleepers = self.sleepers.0.lock().unwrap();
        while let Some(first) = sleepers
            .first_entry()
            .filter(|first| first.key().0 <= moment)
        {
            first.remove().wake();
        }
        true
    }

    /// Lets this much time pass.
    pub(crate) fn pass(&mut self, time: Duration) {
        let end = self.test.now().plus(time);
        self.settle();
        while self.advance(end) {
            self.settle();
        }
        self.test.advance_to(end);
    }

    /// Lets time pass until the future is ready, and returns its output.
    pub(crate) fn wait<T: 'static>(&mut self, future: impl Future<Output = T> + 'static) -> T {
        let answer = Arc::new(Mutex::new(None));
        let given = answer.clone();
        let task = self.spawn(async move {
            let output = future.await;
            *given.lock().unwrap() = Some(output);
        });
        let end = self.test.now().plus(Duration::from_secs(24 * 3600));
        self.settle();
        while self.runs(task) {
            assert!(self.advance(end), "the task waits without a timer");
            self.settle();
        }
        let answer = answer.lock().unwrap().take();
        answer.unwrap()
    }

    /// Returns the number of requests since the last call.
    pub(crate) fn take_requests(&self) -> u64 {
        self.turns.requests.swap(0, Ordering::Relaxed)
    }
}
