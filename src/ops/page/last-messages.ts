// last-messages.ts: the last messages of a device: raw, beside what they became.

import { plural } from '../../std/quantity.ts'
import { bounded } from '../../std/quote.ts'
import type { DeviceMessage, DeviceView } from '../types.ts'
import { html, type Html } from './html.ts'
import { ago, at, jsonText, link, sentence, textBox } from './shown-values.ts'

type MessagesShown = {
  now: string
  device: DeviceView
  messages: readonly DeviceMessage[]
  /** Messages that were not kept. */
  skipped: number
}

/** Beyond, a person opens them. */
const openMessages = 3

export function messagesSection({ messages, skipped, device, now }: MessagesShown): Html {
  return html`<section aria-labelledby="messages-title">
    <h2 id="messages-title">Last messages</h2>
    ${messages.length === 0 && html`<p class="quiet">${device.position === null && device.messages > 0 ? 'None is kept: none came since the start, or its asset has a privacy profile.' : 'None.'}</p>`}
    ${messages.slice(0, openMessages).map((one) => messageArticle(one, now))}
    ${
      messages.length > openMessages &&
      html`<details>
        <summary>${plural(messages.length - openMessages, 'older message')}</summary>
        ${messages.slice(openMessages).map((one) => messageArticle(one, now))}
      </details>`
    }
    ${skipped > 0 && html`<p class="quiet">${plural(skipped, 'message')} between them were not kept, because too many came in a second.</p>`}
  </section>`
}

function messageArticle(one: DeviceMessage, now: string): Html {
  const { message, hex = '', cutBytes = 0 } = one
  const flags = [`QoS ${one.qos}`, one.retain ? 'retained' : '', one.dup ? 'DUP' : ''].filter(
    (flag) => flag !== '',
  )
  return html`<article class="message">
    <h3>
      ${at(one.at)} <span class="quiet">${ago(one.at, now)}</span>
      <span class="state ${becameClass[one.became] ?? ''}">${one.became}</span>
    </h3>
    <p><code>${bounded(one.topic)}</code> <span class="quiet">${flags.join(', ')}</span></p>
    ${one.reason !== null && html`<p class="bad">${sentence(one.reason)}</p>`}
    <div class="beside">
      <div>
        <h4>As it came</h4>
        ${textBox('As it came', message ?? hex ?? '')}
        ${cutBytes > 0 && html`<p class="quiet">${plural(cutBytes, 'byte')} more are not kept.</p>`}
      </div>
      <div>
        <h4>As it is sent</h4>
        ${one.payloads.length === 0 && html`<p class="quiet">${cutBytes > 0 ? 'It was cut when it was kept, and is not mapped again.' : 'No payload.'}</p>`}
        ${one.payloads.map(
          ({ payload, payloadId, outcomes }) =>
            html`${textBox('As it is sent', jsonText(payload))}
              <p>
                ${outcomeText(outcomes, now)}
                <a class="quiet" href="${link('/page/ledger', { payload: payloadId })}">ledger</a>
              </p>`,
        )}
      </div>
    </div>
  </article>`
}

const becameClass: Readonly<Record<string, string>> = {
  payloads: 'delivered',
  ignored: 'retried',
  unmappable: 'dead',
  quarantined: 'retried',
}

function outcomeText(outcomes: DeviceMessage['payloads'][number]['outcomes'], now: string): Html {
  if (outcomes === null) return html`<span class="quiet">The ledger cannot be read.</span>`
  const [last] = outcomes
  if (last === undefined) return html`<span class="quiet">Not settled: it waits in the spool.</span>`
  return html`<span class="state ${last.outcome}">${last.outcome}</span> ${ago(last.at, now)} ${last.reason}
    ${last.detail}`
}
