// webhook.ts: sends alerts as HTTP requests.

import { createHmac } from 'node:crypto'
import type { Secret } from '../../std/secret.ts'
import { assertNever } from '../../std/assert.ts'
import { bodyOf } from '../alert-body.ts'
import { textOf } from '../alert-text.ts'
import type { Alert, AlertReceiver } from '../types.ts'
import { shownTarget } from './hidden-text.ts'
import { checkHttp, sendHttp, type HttpTarget } from './http-request.ts'

export type WebhookOptions = {
  target: HttpTarget
  body: 'json' | 'chat' | 'text'
  secret: Secret | null
  /** Unix time in milliseconds, as right as it is known. */
  ourTime: () => number
}

/** Chat servers refuse or cut longer ones. */
const chatLengthMax = 1900

export function createWebhook({ target, body: form, secret, ourTime }: WebhookOptions): AlertReceiver {
  return {
    type: 'webhook',
    target: shownTarget(target.url.reveal()),
    timeoutMs: target.timeoutMs,
    send(alert, ends) {
      const [contentType, body] = contentOf(alert, form)
      const seconds = Math.floor(ourTime() / 1000)
      const headers = {
        'content-type': contentType,
        'gateway-alert-id': alert.id,
        'gateway-timestamp': String(seconds),
        ...(secret === null ? {} : { 'gateway-signature': signatureOf(secret, seconds, body) }),
      }
      return sendHttp(target, { method: 'POST', headers, body }, ends)
    },
    check: (ends) => checkHttp(target, ends),
  }
}

/** A name of a device must not call all members of a chat, nor hide an address behind other words. */
function withoutMarkup(text: string): string {
  return text
    .replaceAll('<', '(')
    .replaceAll('>', ')')
    .replaceAll(/@(?=\S)/g, '@ ')
    .replaceAll(/\](?=[([:])/g, '] ')
}

function contentOf(alert: Alert, form: WebhookOptions['body']): [contentType: string, body: string] {
  switch (form) {
    case 'json':
      return ['application/json', JSON.stringify(bodyOf(alert))]
    case 'chat':
      return ['application/json', JSON.stringify({ text: withoutMarkup(textOf(alert, chatLengthMax)) })]
    case 'text':
      return ['text/plain; charset=utf-8', textOf(alert, chatLengthMax)]
    default:
      return assertNever(form)
  }
}

// The signature of a webhook: HMAC-SHA256 with the shared secret over the time and the
// body, so that neither can be changed, and a recorded request is recognised by its time (docs/alerts.md).

/** `seconds`: Unix time, as in the header `gateway-timestamp`. */
function signatureOf(secret: Secret, seconds: number, body: string): string {
  return `v1=${createHmac('sha256', secret.reveal()).update(`${seconds}.${body}`).digest('hex')}`
}
