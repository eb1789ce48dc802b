// dead-letter-page.ts: `/page/dead-letter?id=`: one dead letter, whole, and what can be done with it.

import { isUtf8 } from 'node:buffer'
import type { DeadLetter } from '../../../domain/dead-letter.ts'
import { namedProperties } from '../../../domain/message.ts'
import { html, nothing, type Html } from '../html.ts'
import { changes, type Access } from '../page-changes.ts'
import { ago, at, jsonText, link, named, sentence } from '../shown-values.ts'
import { facts } from '../table.ts'
import { deviceLink } from './devices-page.ts'

export type DeadLetterShown = {
  id: string
  deadLetter: DeadLetter
  now: string
  access: Access
  token: string | null
}

const bytesShownMax = 64 * 1024

export function deadLetterView({ id, deadLetter: one, now, access, token }: DeadLetterShown): Html {
  const when = new Date(one.at).toISOString()
  return html`<div class="verdict dead">
      <p class="sentence"><code>${one.reason}</code> ${sentence(one.detail)}</p>
    </div>
    ${facts([
      ['Given up', html`${at(when)}, ${ago(when, now)}`],
      ['Stage', one.stage],
      ['Device', one.device === null ? null : deviceLink(one.device)],
      ['Provider', one.provider === null ? null : named(one.provider)],
      [
        'Payload',
        one.payloadId === null
          ? null
          : html`<a href="${link('/page/ledger', { payload: one.payloadId })}"
              ><code>${one.payloadId}</code></a
            >`,
      ],
      ['Batch', one.batchId === null ? null : html`<code>${one.batchId}</code>`],
      [
        'Request',
        one.requestId === null
          ? null
          : html`<a href="${link('/page/ledger', { request: one.requestId })}"
              ><code>${one.requestId}</code></a
            >`,
      ],
    ])}
    ${
      one.failure !== null &&
      html`<h2>Answer of the service</h2>
        <pre tabindex="0"><code>${jsonText(one.failure)}</code></pre>`
    }
    ${one.envelope !== null && envelopeSection(one.envelope)}
    ${
      one.payload !== null &&
      html`<h2>Payload</h2>
        <pre tabindex="0"><code>${jsonText(one.payload)}</code></pre>`
    }
    <h2>Change it</h2>
    ${changes(access, [
      { action: 'dead-letters/requeue', parameters: { id }, name: 'Requeue' },
      { action: 'dead-letters/purge', parameters: { id }, name: 'Purge' },
      ...(one.payload !== null && !access.canChange
        ? [{ action: 'dead-letters/edit', parameters: { id }, name: 'Edit' }]
        : []),
    ])}
    ${one.payload !== null && access.canChange ? editForm(id, one.payload, token) : nothing}`
}

function envelopeSection(envelope: NonNullable<DeadLetter['envelope']>): Html {
  const { topic, qos, retain, dup, clientId, userName, from, source, arrivedAt } = envelope
  const payload = Buffer.from(envelope.bytes, 'base64')
  const bytes = payload.subarray(0, bytesShownMax)
  const text = isUtf8(bytes) ? bytes.toString('utf8') : bytes.toString('hex')
  const flags = [`QoS ${qos}`, retain ? 'retained' : '', dup ? 'DUP' : ''].filter((flag) => flag !== '')
  const properties = namedProperties(envelope)
    .map(([name, value]) => `${name} ${value}`)
    .join(', ')
  return html`<h2>Message</h2>
    ${facts([
      ['Topic', html`<code>${topic}</code>`],
      ['Came', at(new Date(arrivedAt).toISOString())],
      ['Flags', flags.join(', ')],
      ['Source', named(source)],
      ['Client', named(clientId)],
      ['User', userName === null ? null : named(userName)],
      ['Message source', from === undefined ? null : named(from)],
      ['Properties', properties === '' ? null : named(properties)],
    ])}
    <pre tabindex="0"><code>${text}</code></pre>
    ${payload.length > bytes.length && html`<p class="quiet">The first ${bytes.length} of ${payload.length} bytes.</p>`}`
}

function editForm(id: string, payload: unknown, token: string | null): Html {
  return html`<h2 id="edit-title">Edit and send</h2>
    <form method="post" action="/page/change">
      <input type="hidden" name="token" value="${token}" /><input
        type="hidden"
        name="change"
        value="dead-letters/edit"
      />
      <input type="hidden" name="id" value="${id}" />
      <label for="body"
        >The corrected payload. It keeps its payloadId, unless you change device, asset or time.</label
      >
      <textarea id="body" name="body" rows="16" spellcheck="false">${jsonText(payload)}</textarea>
      <p>
        <label
          ><input type="checkbox" name="sure" value="1" required /> Replace the payload and send it</label
        >
      </p>
      <button>Send</button>
    </form>`
}
