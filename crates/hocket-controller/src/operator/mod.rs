//! The listener of operators: health, metrics, the live page, links that fail and return.
//!
//! All but the two health checks need the token in the state's folder: as `Authorization: Bearer`, or as the
//! cookie that `/?token=` sets.

mod connections;
mod expected;
mod view;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{ConnectInfo, FromRequest, Query, Request, State};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use hocket_wire::setup::SetupError;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio::time::{sleep, timeout};
use tokio_stream::Stream;
use tokio_stream::wrappers::ReceiverStream;
use tracing::info;

use crate::cluster::Network;
use crate::server_owner::ServerOwner;

/// How often the page is told what there is.
const EVERY: Duration = Duration::from_secs(1);
/// Most bytes of a request.
const MOST_BYTES: usize = 1 << 20;
/// How long the head of a request may take, and its body; a connection that asks for nothing ends after as long.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long an answer waits for the disk.
const DISK: Duration = Duration::from_secs(10);

/// What the operators' listener shows.
#[derive(Clone)]
pub struct Operators {
    /// The active controller's server; `None` while this one waits.
    pub server_owner: watch::Receiver<Option<Arc<ServerOwner>>>,
    /// The fabric.
    pub network: Arc<Network>,
    /// What requests must show.
    pub token: Arc<str>,
    /// The file that says which links have failed, in place of operators.
    pub links: Option<PathBuf>,
    /// What the page is told.
    pub news: watch::Sender<Arc<str>>,
    /// Says when to stop.
    pub stop: watch::Receiver<bool>,
}

impl Operators {
    /// Serves until told to stop, and returns when the requests that came before have their answers.
    pub async fn serve(self, listener: TcpListener) {
        let stop = self.stop.clone();
        tokio::spawn(self.clone().tell_news());
        let closed = Router::new()
            .route("/", get(page))
            .route("/page.js", get(script))
            .route("/page.css", get(style))
            .route("/state", get(state))
            .route("/news", get(news))
            .route("/metrics", get(metrics))
            .route("/links", post(links))
            .layer(middleware::from_fn_with_state(self.clone(), check));
        let router = Router::new()
            .route("/healthz", get(async || "ok\n"))
            .route("/readyz", get(ready))
            .merge(closed)
            .layer(axum::extract::DefaultBodyLimit::max(MOST_BYTES))
            .layer(middleware::map_response(guard))
            .with_state(self);
        connections::serve(listener, router, stop).await;
    }

    fn server_owner(&self) -> Option<Arc<ServerOwner>> {
        self.server_owner.borrow().clone()
    }

    /// One computation for all who look, and none when nobody does.
    async fn tell_news(self) {
        let mut stop = self.stop.clone();
        loop {
            tokio::select! {
                _ = stop.wait_for(|stop| *stop) => return,
                () = sleep(EVERY) => {}
            }
            if self.news.receiver_count() > 0
                && let Some(server_owner) = self.server_owner()
            {
                let text = view::all(&server_owner, &self.network).to_string();
                self.news.send_replace(text.into());
            }
        }
    }
}

/// A page of another site must neither frame this one nor read it, and nothing is loaded from elsewhere.
async fn guard(mut response: Response) -> Response {
    let headers = response.headers_mut();
    for (name, value) in [
        (
            header::CONTENT_SECURITY_POLICY,
            "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
             frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
        ),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

async fn check(
    State(operators): State<Operators>,
    ConnectInfo(from): ConnectInfo<SocketAddr>,
    request: Request,
    next: Next,
) -> Response {
    let headers = request.headers();
    let value = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let bearer = value(header::AUTHORIZATION).and_then(|value| value.strip_prefix("Bearer "));
    let cookies = value(header::COOKIE).unwrap_or("").split("; ");
    let cookies = cookies.filter_map(|cookie| cookie.strip_prefix("hocket="));
    let asked = request.uri().query().unwrap_or("").strip_prefix("token=");
    let is_page = request.uri().path() == "/";
    // Another site can make a browser send the cookie, not the header.
    let is_read = request.method() == Method::GET;
    let cookies = cookies.filter(|_| is_read);
    // A browser may have the cookie of a controller that was here before.
    let mut shown = bearer
        .into_iter()
        .chain(cookies)
        .chain(asked.filter(|_| is_page));
    match shown.any(|shown| is_same(shown, &operators.token)) {
        true => next.run(request).await,
        false => {
            let given = bearer.is_some() || headers.contains_key(header::COOKIE) || asked.is_some();
            let why = if given { "a wrong token" } else { "no token" };
            let (method, path) = (request.method(), request.uri().path());
            info!(target: "audit", %from, %method, path, why, "a request of an operator is refused");
            let text = "give the token: Authorization: Bearer, or /?token= in a browser\n";
            (StatusCode::UNAUTHORIZED, text).into_response()
        }
    }
}

/// Takes as long wherever they differ.
fn is_same(one: &str, other: &str) -> bool {
    let pairs = one.bytes().zip(other.bytes());
    let differ = pairs.fold(0, |differ, (a, b)| differ | (a ^ b));
    one.len() == other.len() && differ == 0
}

async fn page(
    State(operators): State<Operators>,
    Query(query): Query<Vec<(String, String)>>,
) -> Response {
    if query.is_empty() {
        return with_type("text/html; charset=utf-8", include_str!("page.html"));
    }
    let cookie = format!(
        "hocket={}; HttpOnly; SameSite=Strict; Path=/",
        operators.token
    );
    let mut response = Redirect::to("/").into_response();
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    response
}

async fn script() -> Response {
    with_type("text/javascript; charset=utf-8", include_str!("page.js"))
}

async fn style() -> Response {
    with_type("text/css; charset=utf-8", include_str!("page.css"))
}

fn with_type(kind: &'static str, text: &'static str) -> Response {
    ([(header::CONTENT_TYPE, kind)], text).into_response()
}

async fn ready(State(operators): State<Operators>) -> Response {
    match operators
        .server_owner()
        .ok_or("standby".to_owned())
        .and_then(|server_owner| readiness(&server_owner))
    {
        Ok(text) => format!("{text}\n").into_response(),
        Err(why) => (StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")).into_response(),
    }
}

/// That the active controller is ready, or why it is not.
fn readiness(server_owner: &ServerOwner) -> Result<String, String> {
    let metrics = server_owner.metrics();
    if metrics.log_failed.get() > 0 {
        return Err("the state cannot be written".to_owned());
    }
    let (epoch, is_synced, hosts, missing) = server_owner.view(|server| {
        let missing = server.missing().count();
        (
            server.epoch(),
            server.is_synced(),
            server.directory().len(),
            missing,
        )
    });
    let later = metrics.later_epoch.get();
    if later > 0 {
        return Err(format!(
            "{} of {hosts} hosts refuse this controller, of epoch {epoch}, since they have obeyed epoch {later}: \
             where no other is active, start it with --epoch {}",
            metrics.later_hosts.get(),
            later.saturating_add(1),
        ));
    }
    match (is_synced, missing) {
        (true, 0) => Ok("ready".to_owned()),
        (true, _) => Ok(format!(
            "ready, though {missing} of {hosts} hosts have not come"
        )),
        (false, _) => Err(format!(
            "recovering: {missing} of {hosts} hosts have not come"
        )),
    }
}

async fn metrics(State(operators): State<Operators>) -> Response {
    let mut text = String::new();
    match operators.server_owner() {
        Some(server_owner) => view::metrics(&server_owner, &mut text),
        None => crate::metrics::number(
            &mut text,
            "gauge",
            "active",
            "1 where this controller is the active one.",
            0,
        ),
    }
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], text).into_response()
}

async fn state(State(operators): State<Operators>) -> Response {
    match operators.server_owner() {
        Some(server_owner) => reply(
            StatusCode::OK,
            &view::all(&server_owner, &operators.network),
        ),
        None => reply(StatusCode::OK, &json!({"active": false})),
    }
}

fn reply(status: StatusCode, value: &Value) -> Response {
    let kind = [(header::CONTENT_TYPE, "application/json")];
    (status, kind, format!("{value}\n")).into_response()
}

async fn news(
    State(operators): State<Operators>,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let (sender, receiver) = mpsc::channel(1);
    let mut news = operators.news.subscribe();
    let mut stop = operators.stop.clone();
    tokio::spawn(async move {
        // A stream that stays open would hold up the end of the service.
        loop {
            let text = news.borrow_and_update().clone();
            if sender
                .send(Ok(Event::default().data(&*text)))
                .await
                .is_err()
            {
                return;
            }
            tokio::select! {
                _ = stop.wait_for(|stop| *stop) => return,
                () = sender.closed() => return,
                changed = news.changed() => if changed.is_err() { return },
            }
        }
    });
    Sse::new(ReceiverStream::new(receiver)).keep_alive(KeepAlive::default())
}

/// `{"fail": ["A,B", "C"], "return": [...]}`: links by their ends, or all links of a switch. It is answered once a restart
/// would not forget it.
async fn links(
    State(operators): State<Operators>,
    ConnectInfo(from): ConnectInfo<SocketAddr>,
    request: Request,
) -> Response {
    let agent = request.headers().get(header::USER_AGENT).cloned();
    let agent = agent.as_ref().and_then(|agent| agent.to_str().ok());
    let body = match timeout(PATIENCE, Bytes::from_request(request, &())).await {
        Ok(Ok(body)) => body,
        Ok(Err(rejection)) => return rejection.into_response(),
        Err(_) => {
            let why = format!("the request was not whole after {} s", PATIENCE.as_secs());
            info!(target: "audit", %from, why, agent, "a request of an operator is refused");
            return reply(StatusCode::REQUEST_TIMEOUT, &json!({"error": why}));
        }
    };
    let said = match (&operators.links, operators.server_owner()) {
        (Some(file), _) => Err(format!(
            "{} says which links have failed; write it there",
            file.display()
        )),
        (_, None) => Err("this controller is not the active one; ask the other".to_owned()),
        (None, Some(server_owner)) => {
            said_of_links(&body, &operators.network).map(|said| (server_owner, said))
        }
    };
    match said {
        Ok((server_owner, Said { value, fail, back })) => {
            info!(target: "audit", %from, %value, agent, "an operator says of links");
            let answer = json!({"failed": fail.len(), "returned": back.len()});
            let kept = timeout(DISK, server_owner.operate(fail, back)).await;
            drop(server_owner);
            match kept {
                Ok(Ok(true)) => reply(StatusCode::OK, &answer),
                _ => reply(StatusCode::SERVICE_UNAVAILABLE, &json!({"error": UNKEPT})),
            }
        }
        Err(why) => {
            info!(target: "audit", %from, why, agent, "a request of an operator is refused");
            reply(StatusCode::BAD_REQUEST, &json!({"error": why}))
        }
    }
}

/// What operators are told where the disk fails.
const UNKEPT: &str = "what you say holds from now on, but the state cannot be written, and a restart would forget it: see \
                      the log, make the state's folder writable, and say it again";

/// What an operator says of links.
struct Said {
    value: Value,
    fail: Vec<u32>,
    back: Vec<u32>,
}

fn said_of_links(body: &[u8], network: &Network) -> Result<Said, String> {
    let value: Value = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    let known = |key: &String| ["fail", "return"].contains(&key.as_str());
    if !value
        .as_object()
        .is_some_and(|object| object.keys().all(known))
    {
        return Err("write {\"fail\": [...], \"return\": [...]}".to_owned());
    }
    let named = |key: &str| {
        let list = match &value[key] {
            Value::Null => return Ok(Vec::new()),
            Value::Array(list) => list,
            _ => return Err(format!("{key:?} is not a list of links")),
        };
        let mut links = Vec::new();
        for item in list {
            let text = item
                .as_str()
                .ok_or_else(|| format!("{key:?} is not a list of texts"))?;
            links.extend(network.links_named(text)?.iter().map(|link| link.0));
        }
        Ok(links)
    };
    let (fail, back) = (named("fail")?, named("return")?);
    Ok(Said { value, fail, back })
}

/// Binds a listener.
///
/// # Errors
/// A line that says which address, and what to do.
pub async fn bind(address: SocketAddr, key: &str) -> Result<TcpListener, SetupError> {
    TcpListener::bind(address).await.map_err(|error| {
        let remedy = format!("stop who listens there, or set another {key}");
        SetupError::new(format!("{key} {address}"), error.to_string(), remedy)
    })
}
