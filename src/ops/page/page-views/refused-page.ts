// refused-page.ts: `/page/refused`: who could not connect, or may not send what it sends, in the last hour.

import type { Status } from '../../status-schema/status-schema.ts'
import type { DeviceClient } from '../../types.ts'
import { html, type Html } from '../html.ts'
import { ago, count, named, sentence } from '../shown-values.ts'
import { table } from '../table.ts'
import { deviceLink } from './devices-page.ts'

const hourMs = 3_600_000

type RefusedShown = {
  now: string
  clients: readonly DeviceClient[]
  status: Pick<Status, 'clients' | 'reasons'>
}

export function refusedView({ now, clients, status: { clients: counted } }: RefusedShown): Html {
  const recent = clients.filter((one) => Date.parse(now) - lastAt(one) < hourMs)
  const { authentication, refusedMessages } = counted
  return html`<div id="refused" data-region>
    <h2>Clients</h2>
    ${table({
      caption: 'Clients with a fault in the last hour, the latest first',
      columns: ['Client', 'State', 'Last fault', 'Reason', '*Faults', 'User', 'Identity', 'Address'],
      rows: recent.map((one) => [
        deviceLink(one.clientId || (one.address ?? 'unknown')),
        html`<span class="state ${one.state}">${one.state}</span>`,
        ago(new Date(lastAt(one)).toISOString(), now),
        html`${one.fault !== null && html`<code>${one.fault.reason}</code> ${sentence(one.fault.detail)}`}${
          one.refusedMessages > 0 && html` ${count(one.refusedMessages)} of its messages were refused.`
        }`,
        count(one.fault?.count ?? 0),
        named(one.userName),
        named(one.identity),
        html`<code>${one.address}</code>`,
      ]),
      empty: 'No client was refused in the last hour.',
    })}
    <h2>Wrong passwords</h2>
    <p>${count(authentication.failures)} since the start.</p>
    ${
      authentication.failures > 0 &&
      html`<div class="columns">
        <div>
          ${table({
            caption: 'By address',
            columns: ['Address', '*Wrong passwords'],
            rows: authentication.addresses.map((one) => [
              html`<code>${one.name}</code>`,
              count(one.failures),
            ]),
          })}
        </div>
        <div>
          ${table({
            caption: 'By user',
            columns: ['User', '*Wrong passwords'],
            rows: authentication.users.map((one) => [named(one.name), count(one.failures)]),
          })}
        </div>
      </div>`
    }
    <h2>Messages that a rule refuses</h2>
    ${table({
      caption: 'Since the start, by identity and rule',
      columns: ['Identity', 'Rule', '*Messages'],
      rows: refusedMessages.map((one) => [
        one.identity === null ? 'anonymous clients' : named(one.identity),
        html`<code>${one.reason}</code>`,
        count(one.messages),
      ]),
    })}
  </div>`
}

function lastAt({ fault, refusedAt, messageRefusedAt }: DeviceClient): number {
  return Math.max(...[fault?.at, refusedAt, messageRefusedAt].map((time) => (time ? Date.parse(time) : 0)))
}
