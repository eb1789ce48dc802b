// layout.ts: what every view has around it: head, verdict, navigation, footer.

import { timeZone, zonedTime } from '../../std/clock.ts'
import type { Status } from '../status-schema/status-schema.ts'
import { assetsVersion } from './page-assets.ts'
import { html, markupOf, nothing, type Html } from './html.ts'
import { count } from './shown-values.ts'
import type { TextAnswer } from '../http/json-answer.ts'

/** Scripts, styles and requests of the page itself, and nothing else. */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "form-action 'self'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
].join('; ')

const pageHeaders = {
  'content-security-policy': policy,
  'cross-origin-opener-policy': 'same-origin',
  // With `no-referrer`, which the other answers have, a browser sends `Origin: null` with our forms.
  'referrer-policy': 'same-origin',
  'permissions-policy': 'camera=(), geolocation=(), microphone=(), payment=(), usb=()',
  vary: 'accept',
}

export const pageType = 'text/html; charset=utf-8'

export type Shown = {
  /** Also the heading of level 1. */
  title: string
  body: Html
  /** HTTP status; 200 where it is absent. */
  status?: number
  /** Path in the navigation; the view's own path. */
  path: string
  /** A script keeps the parts with `data-region` new. */
  isLive?: boolean
  /** A script shows messages as they come. */
  hasTap?: boolean
}

/** What the frame shows of the gateway. */
export type Frame = Pick<Status, 'verdict' | 'sentence' | 'version' | 'now' | 'spool' | 'devices'> & {
  heldBatches: number
  /** Name of the user, or null; and whether there are users. */
  user: string | null
  hasUsers: boolean
  token: string | null
}

export const verdictWords = {
  ok: 'OK',
  degraded: 'Degraded',
  not_delivering: 'Not delivering',
  not_receiving: 'Not receiving',
} as const

type Entry = { path: string; name: string; number?: number }

function entriesOf({ spool, devices, heldBatches }: Frame): readonly Entry[] {
  return [
    { path: '/', name: 'Overview' },
    { path: '/page/devices', name: 'Devices', number: devices.silent + devices.refused },
    { path: '/page/map', name: 'Map' },
    { path: '/page/refused', name: 'Refused', number: devices.refused },
    { path: '/page/dead-letters', name: 'Dead letters', number: spool.deadLetters },
    { path: '/page/quarantine', name: 'Quarantine', number: spool.quarantined },
    { path: '/page/batches', name: 'Batches', number: heldBatches },
    { path: '/page/ledger', name: 'Ledger' },
    { path: '/page/live', name: 'Live' },
    { path: '/page/changes', name: 'Changes' },
  ]
}

export function pageAnswer(shown: Shown, frame: Frame | null): TextAnswer {
  const { title, body, status = 200, path, isLive = false, hasTap = false } = shown
  const version = assetsVersion()
  const scripts = [
    // First, because it remembers the view as it was made.
    ...(isLive ? ['live-regions'] : []),
    'browser',
    ...(hasTap ? ['tap-list'] : []),
  ]
  const document = html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <title>${title} · telemetry gateway</title>
        <link rel="icon" href="/page/assets/icon.svg" type="image/svg+xml" />
        <link rel="stylesheet" href="/page/assets/page.css?v=${version}" />
        ${scripts.map(
          (name) => html`<script src="/page/assets/${name}.js?v=${version}" type="module"></script> `,
        )}
      </head>
      <body data-zone="${timeZone()}">
        <a class="skip" href="#main">Skip to the content</a>
        ${
          frame === null
            ? html`<header>
                <p class="name"><a href="/">telemetry gateway</a></p>
              </header>`
            : header(frame, path)
        }
        <main id="main" tabindex="-1" ${isLive && html`data-live`}>
          <h1>${title}</h1>
          ${body}
        </main>
        ${frame === null ? nothing : footer(frame, isLive)}
      </body>
    </html> `
  return { status, contentType: pageType, body: markupOf(document), headers: pageHeaders }
}

function header(frame: Frame, path: string): Html {
  const { verdict, user, hasUsers, token } = frame
  return html`<header>
    <p class="name"><a href="/">telemetry gateway</a></p>
    <p class="verdict-word ${verdict}" id="verdict-word" data-region role="status">
      ${verdictWords[verdict]}
    </p>
    <nav aria-label="Views" id="views" data-region>
      <ul>
        ${entriesOf(frame).map((entry) => item(entry, path))}
      </ul>
    </nav>
    ${
      user !== null &&
      html`<form class="user" method="post" action="/logout">
        <input type="hidden" name="token" value="${token}" /> <span>${user}</span> <button>Log out</button>
      </form>`
    }
    ${user === null && hasUsers && html`<p class="user"><a href="/login">Log in</a></p>`}
  </header>`
}

function item({ path, name, number = 0 }: Entry, current: string): Html {
  const here = path === current && html` aria-current="page"`
  return html`<li>
    <a href="${path}" ${here}>${name}${number > 0 && html` <span class="badge">${count(number)}</span>`}</a>
  </li> `
}

function footer({ version, now }: Frame, isLive: boolean): Html {
  return html`<footer>
    <p>
      Version ${version}. State of
      <time id="now" data-region datetime="${now}">${zonedTime(now)}</time>.
      ${isLive && html`<span class="without-script">Reload the page for a newer one.</span>`}
    </p>
    <p>
      <a href="/status">/status</a> · <a href="/openapi.json">/openapi.json</a> ·
      <a href="/metrics">/metrics</a>
    </p>
  </footer>`
}
