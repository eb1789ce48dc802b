// login-routes.ts: logging in and out with a browser, for the users in ops.users.
//
//   GET  /login    the page with the form
//   POST /login    name, password, to: opens a session and sends the browser to `to`; else back to the page
//   GET  /session  who is logged in, and the token of the session
//   POST /logout   token: ends the session
//
// A login is in the audit log. A wrong password is counted, delayed and limited as with HTTP Basic
// (request-rights/).

import { z } from 'zod'
import { sessionSchema } from './answer-schemas/answer-schemas.ts'
import { seeOther, loginPlace, loginUrl, ownPlace } from './request-rights/login-places.ts'
import { choice, noParameters, text } from './http-routing/parameters.ts'
import { route, type Route, type RouteRequest } from './http-routing/route.ts'
import { ok, type TextAnswer } from './json-answer.ts'
import { html } from '../page/html.ts'
import { pageAnswer, pageType } from '../page/layout.ts'

export const loginFailures = ['wrong', 'busy', 'limited', 'no_users'] as const
type LoginFailure = (typeof loginFailures)[number]

const formType = 'application/x-www-form-urlencoded'
const formBytesMax = 8192
const nameLengthMax = 64

export const loginRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: loginUrl,
    summary: 'Shows the form to log in with a browser.',
    right: 'open',
    atOnce: true,
    page: true,
    parameters: z.strictObject({
      to: text('Path where the browser goes then.'),
      failed: choice('Why the last try was refused.', loginFailures),
    }),
    answers: {
      200: { means: 'The page.', contentType: pageType },
      303: { means: 'To `to`: the browser has a session.', contentType: 'text/plain' },
    },
    answer({ values: { to = '/', failed }, access }) {
      const isIn = access.token !== null && failed === undefined
      return isIn ? seeOther(ownPlace(to)) : loginPage(ownPlace(to), failed)
    },
  }),
  route({
    method: 'POST',
    path: loginUrl,
    summary: 'Logs in with a browser, and sends it back to the page.',
    right: 'open',
    atOnce: true,
    page: true,
    parameters: noParameters,
    form: { bytesMax: formBytesMax, token: 'none' },
    body: { contentType: formType, means: 'The fields `name` and `password`; `to`: a path.' },
    answers: { 303: { means: 'To the page, or to /login with the reason.', contentType: 'text/plain' } },
    answer: login,
  }),
  route({
    method: 'GET',
    path: '/session',
    summary: 'Shows who is logged in, and the token that changes of a browser need.',
    right: 'open',
    atOnce: true,
    parameters: noParameters,
    answers: { 200: { means: 'The user and the rights.', schema: sessionSchema } },
    answer({ access: { user, mayRead, mayChange, hasUsers, token } }) {
      return ok({ user, mayRead, mayChange, hasUsers, token })
    },
  }),
  route({
    method: 'POST',
    path: '/logout',
    summary: 'Ends the session of the browser.',
    right: 'open',
    atOnce: true,
    page: true,
    parameters: noParameters,
    form: { bytesMax: formBytesMax, token: 'checked' },
    body: { contentType: formType, means: 'The field `token`: that of the session.' },
    answers: { 303: { means: 'To /login.', contentType: 'text/plain' } },
    answer: ({ rights, request }) => seeOther(loginUrl, { 'set-cookie': rights.logout(request) }),
  }),
]

async function login({ rights, audit, caller, form, request }: RouteRequest<unknown>): Promise<TextAnswer> {
  const name = (form.get('name') ?? '').slice(0, nameLengthMax)
  const to = form.get('to') ?? '/'
  const result = await rights.login(request, { name, password: form.get('password') ?? '' })
  if (result.kind === 'failed') return loginPlace(to, result.why)
  const end = await audit.begin('login', '', { ...caller, user: result.user })
  await end({ status: 200, value: {} })
  return seeOther(ownPlace(to), { 'set-cookie': result.setCookie })
}

const failureTexts: Record<LoginFailure, string> = {
  wrong: 'The user or the password is wrong.',
  busy: 'Too many passwords are being checked. Try again in a second.',
  limited: 'Too many wrong passwords came from your address. Try again in a minute.',
  no_users: 'The config has no users (ops.users).',
}

function loginPage(to: string, failed: LoginFailure | undefined): TextAnswer {
  const body = html`
    ${failed !== undefined && html`<p class="bad" role="alert" id="failure">${failureTexts[failed]}</p>`}
    <form class="login" method="post" action="${loginUrl}">
      ${to !== '/' && html`<input type="hidden" name="to" value="${to}" />`}
      <p>
        <label
          >User
          <input
            name="name"
            autocomplete="username"
            required
            autofocus
            ${failed !== undefined && html`aria-describedby="failure"`}
        /></label>
      </p>
      <p>
        <label
          >Password <input name="password" type="password" autocomplete="current-password" required
        /></label>
      </p>
      <p><button>Log in</button></p>
    </form>
  `
  return pageAnswer({ title: 'Log in', body, path: loginUrl }, null)
}
