//! Who asks: the user behind a request, and its player.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use holdfast_core::input::{Client, RefuseReason, UserId, Viewing};
use holdfast_core::playback::Item;

use super::{Then, read_only, refused};
use crate::http::field::{RETRY_AFTER, WWW_AUTHENTICATE};
use crate::http::{FieldValue, Method, Request, RequestBody, Response, Status};
use crate::providers::library::Library;
use crate::server::{Attempt, Call, Produce};
use crate::users;

/// Name and password as a request bears them: in its query, or as HTTP Basic (RFC 7617).
pub(super) fn credentials(request: &Request) -> Option<(String, String)> {
    let value = |name| request.query_value(name).map(|value| value.into_owned());
    if let (Some(name), Some(password)) = (value("username"), value("password")) {
        return Some((name, password));
    }
    let (scheme, encoded) = request.headers.get("Authorization")?.trim().split_once(' ')?;
    let decoded = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, encoded.trim()).ok();
    let text =
        decoded.filter(|_| scheme.eq_ignore_ascii_case("basic")).and_then(|bytes| String::from_utf8(bytes).ok())?;
    text.split_once(':').map(|(name, password)| (name.to_owned(), password.to_owned()))
}

/// No form is longer.
const FORM: u64 = 64 << 10;

/// Reads the parameters of a POST, which some clients of panels send where others GET.
pub(super) fn form(call: &mut Call<'_>, request: Request) {
    match request.body {
        RequestBody::None => posted(call, request, &[]),
        RequestBody::Length(_) | RequestBody::Chunked => call.read(FORM, Then::Form(Box::new(request))),
    }
}

/// Goes on with it as with a GET that has them in its query. What is there already counts first; what is no form says nothing.
pub(super) fn posted(call: &mut Call<'_>, mut request: Request, body: &[u8]) {
    let said = request.headers.get("Content-Type").unwrap_or_default().split(';').next().unwrap_or_default().trim();
    if said.eq_ignore_ascii_case("application/x-www-form-urlencoded")
        && let Ok(form) = std::str::from_utf8(body)
    {
        let query = request.query.take().filter(|query| !query.is_empty());
        request.query = Some(query.map_or_else(|| form.trim().to_owned(), |query| format!("{query}&{}", form.trim())));
    }
    (request.method, request.body) = (Method::Get, RequestBody::None);
    super::request(call, request);
}

/// The user that these are right for; answers the request if they are not.
pub(super) fn user(call: &mut Call<'_>, request: &Request, name: &str, password: &str) -> Option<UserId> {
    match call.log_in(request, name, password) {
        Attempt::Is(user) => return Some(user),
        Attempt::Wrong => call.answer(wrong()),
        Attempt::TooMany(wait) => call.answer(too_many(wait)),
    }
    None
}

/// Who wants to see an item at an address without credentials in its path: nobody in particular where nobody has to log in.
/// `None`: it was answered.
pub(super) fn viewing(call: &mut Call<'_>, request: &Request, item: Item) -> Option<Option<Viewing>> {
    if call.server.users().is_open() {
        return Some(None);
    }
    let Some((name, password)) = credentials(request) else {
        call.answer(missing());
        return None;
    };
    let user = user(call, request, &name, &password)?;
    Some(Some(of(call, request, user, item)))
}

/// Answers GET and HEAD of something long that is told to users: to everybody where nobody has to log in. `make` gets the name and
/// the password that were right, and what may be seen by whose they are.
pub(super) fn long_page(
    call: &mut Call<'_>,
    request: &Request,
    head: Response,
    make: impl FnOnce(&Call<'_>, &Request, Option<(String, String)>, Library, &[String]) -> Box<dyn Produce>,
) {
    let (mut login, mut groups) = (None, Vec::new());
    if !matches!(request.method, Method::Get | Method::Head) {
        return read_only(call, request, |_| head);
    }
    if !call.server.users().is_open() {
        let (name, password) = credentials(request).unwrap_or_default();
        let Some(user) = user(call, request, &name, &password) else { return };
        let Some(()) = may_look(call, user) else { return };
        groups = call.server.users().get(user).map(|own| own.groups.clone()).unwrap_or_default();
        login = Some((name, password));
    }
    let library = Library::new(call.server.providers(), &groups);
    let producer = make(call, request, login, library, &groups);
    call.produce(head, producer);
}

/// What is to be said of a user now.
pub(super) fn status(call: &Call<'_>, user: UserId) -> users::Status {
    let told = call.server.users().get(user).map(|login| login.status).unwrap_or_default();
    match call.server.edge().config().users.get(user.0 as usize) {
        Some(limits) if limits.enabled && call.server.edge().playback().is_expired(call.now, user) => {
            users::Status::Expired
        }
        Some(limits) if limits.enabled => told,
        _ if told.may_play() => users::Status::Disabled,
        _ => told,
    }
}

/// Whoever may not play is not told what there is either. `None`: it was answered.
pub(super) fn may_look(call: &mut Call<'_>, user: UserId) -> Option<()> {
    if status(call, user).may_play() {
        return Some(());
    }
    call.answer(refused(RefuseReason::AccountExpired, None));
    None
}

/// What this user wants to see, with which player.
pub(super) fn of(call: &Call<'_>, request: &Request, user: UserId, item: Item) -> Viewing {
    Viewing { user, item, client: player(call, request) }
}

/// The player behind a request.
pub(super) fn player(call: &Call<'_>, request: &Request) -> Client {
    let mut agent = DefaultHasher::new();
    request.headers.get("User-Agent").unwrap_or_default().hash(&mut agent);
    Client { address: call.client(request), agent: agent.finish() }
}

/// What nobody looked at.
pub(super) fn too_many(wait: Duration) -> Response {
    let detail = "too many logins from this address failed; wait, then check name and password";
    Response::problem(Status::TOO_MANY_REQUESTS, "too-many-logins", "Too Many Requests", detail)
        .header(RETRY_AFTER, FieldValue::from(wait.as_secs() + 1))
}

fn missing() -> Response {
    let detail = "log in with name and password: HTTP Basic, or username and password in the query";
    Response::problem(Status::UNAUTHORIZED, "unauthorized", "Unauthorized", detail)
        .header(WWW_AUTHENTICATE, FieldValue::from_static("Basic realm=\"holdfast\", charset=\"UTF-8\""))
}

fn wrong() -> Response {
    let detail = "name or password is wrong";
    Response::problem(Status::FORBIDDEN, "wrong-credentials", "Forbidden", detail)
}
