// overview-page.ts: `/`: does it work, what needs a person, what waits, and where.

import { formatDuration, formatSize, plural } from '../../../std/quantity.ts'
import { isoTime } from '../../../std/clock.ts'
import { specOf, type ConditionCode } from '../../conditions/condition-catalogue.ts'
import type { PastCondition } from '../../conditions/condition-history.ts'
import type { Status } from '../../status-schema/status-schema.ts'
import { drainText, laneTable, providerTable } from '../../status-tables.ts'
import {
  offerOfCondition,
  placeOfCondition,
  probeOffer,
  reloadOffer,
  testAlertOffer,
} from '../condition-places.ts'
import { html, nothing, type Html } from '../html.ts'
import { changes, type Access, type ChangeOffer } from '../page-changes.ts'
import { blocksView } from '../shown-blocks.ts'
import { ago, at, count, named, sentence } from '../shown-values.ts'
import { verdictWords } from '../layout.ts'
import { table } from '../table.ts'

export type Overview = {
  status: Status
  past: readonly PastCondition[]
  access: Access
  /** Whether a test alert would go anywhere. */
  hasReceivers: boolean
}

export function overviewOf({ status, past, access, hasReceivers }: Overview, plots: Html): Html {
  const offers = [probeOffer, reloadOffer, ...(hasReceivers ? [testAlertOffer] : [])]
  return html`${verdictSection(status)} ${conditionsSection(status, access)}
    <section aria-labelledby="actions-title">
      <h2 id="actions-title">Actions</h2>
      ${changes(access, offers)}
    </section>
    ${plots}
    <div class="columns">${waitingSection(status)} ${diskSection(status)}</div>
    ${providersSection(status)} ${sourcesSection(status)} ${totalsSection(status)}
    ${pastSection(past, status.now)}`
}

function verdictSection(status: Status): Html {
  const { verdict, sentence: words } = status
  return html`<section class="verdict ${verdict}" id="verdict" data-region aria-label="Verdict">
    <p class="word">${verdictWords[verdict]}</p>
    <p class="sentence">${words}</p>
    <dl class="ages">
      <div>
        <dt>Last message of a device</dt>
        <dd>${agoOrNone(status.lastMessageAt, status)}</dd>
      </div>
      <div>
        <dt>Last payload accepted by the service</dt>
        <dd>${agoOrNone(status.lastAcceptedAt, status)}</dd>
      </div>
    </dl>
  </section>`
}

function conditionsSection({ conditions, conditionsHidden, now }: Status, access: Access): Html {
  return html`<section id="conditions" data-region aria-labelledby="conditions-title">
    <h2 id="conditions-title">Problems</h2>
    ${conditions.length === 0 && html`<p class="quiet">None.</p>`}
    ${conditions.map((one) => conditionArticle(one, now, access))}
    ${conditionsHidden > 0 && html`<p>${plural(conditionsHidden, 'more problem')} not shown.</p>`}
  </section>`
}

function conditionArticle(one: Status['conditions'][number], now: string, access: Access): Html {
  const place = placeOfCondition(one.code)
  return html`<article class="condition ${one.severity}" data-key="${one.code} ${one.key}">
    <h3><span class="severity">${one.severity}</span> ${sentence(one.what)}</h3>
    <p>${sentence(one.why)}</p>
    <p class="act">
      <strong>What to do:</strong> ${sentence(one.act)}
      ${place !== null && html`<a href="${place.path}">${place.name}</a>`}
    </p>
    <p class="quiet">
      <code>${one.code}</code>${one.key !== null && html` ${named(one.key)}`}, since
      ${ago(one.since, now)}${
        one.count > 1 && html`, ${count(one.count)} times, last ${ago(one.lastAt, now)}`
      }
    </p>
    ${one.known !== null && html`<p class="quiet">Known until ${at(one.known.untilAt)}: ${one.known.by}.</p>`}
    ${access.canChange && changes(access, offersFor(one), [one.code, one.key ?? ''].join(' ').trim())}
  </article>`
}

function offersFor({ code, key, known }: Status['conditions'][number]): readonly ChangeOffer[] {
  const ends = offerOfCondition(code)
  const parameters = { code, key }
  const isUntilSeen = specOf(code as ConditionCode).quietMs === Infinity
  return [
    ...(ends === null ? [] : [ends]),
    ...(isUntilSeen ? [{ action: 'conditions/acknowledge', parameters, name: 'Seen, it is over' }] : []),
    known === null
      ? {
          action: 'conditions/acknowledge',
          parameters: { ...parameters, for: '3d' },
          name: 'Known for 3 days',
        }
      : { action: 'conditions/unacknowledge', parameters, name: 'No longer known' },
  ]
}

function pastSection(past: readonly PastCondition[], now: string): Html {
  if (past.length === 0) return nothing
  return html`<section id="past" data-region aria-labelledby="past-title">
    <h2 id="past-title">Problems that are over</h2>
    ${table({
      caption: 'The last ones, of 30 days',
      columns: ['Over', 'Lasted', 'Severity', 'What'],
      rows: past.map((one) => [
        ago(isoTime(one.clearedAt), now),
        formatDuration(Math.max(0, one.clearedAt - one.since)),
        one.severity,
        html`${sentence(one.what)} <code>${one.code}</code>${one.key !== null && html` ${named(one.key)}`}`,
      ]),
    })}
  </section>`
}

/** What waits for delivery: how much, how old, and until when. */
function waitingSection({ lanes, waiting, now }: Status): Html {
  const open = lanes.filter(({ pending, sealed }) => pending + sealed > 0)
  const total = open.reduce((sum, { pending, sealed }) => sum + pending + sealed, 0)
  const oldest = open.reduce<string | null>(
    (early, { oldestAt: at }) => (at !== null && (early === null || at < early) ? at : early),
    null,
  )
  return html`<section id="waiting" data-region aria-labelledby="waiting-title">
    <h2 id="waiting-title">What waits</h2>
    <dl class="numbers">
      <div>
        <dt>Payloads</dt>
        <dd>${count(total)}</dd>
      </div>
      <div>
        <dt>Oldest</dt>
        <dd>${total === 0 ? html`<span class="quiet">none</span>` : ago(oldest, now)}</dd>
      </div>
      <div>
        <dt>Sent in</dt>
        <dd>${drainView(open)}</dd>
      </div>
    </dl>
    ${open.length > 0 && blocksView([laneTable({ lanes: open, now })])}
    ${
      waiting.heldMessages + waiting.openMessages > 0 &&
      html`<p>
        ${plural(waiting.heldMessages, 'message')} without an acknowledgement,
        ${plural(waiting.openMessages, 'message')} waiting to become one payload with others.
      </p>`
    }
  </section>`
}

function drainView(lanes: Status['lanes']): Html {
  if (lanes.length === 0) return html`<span class="quiet">nothing waits</span>`
  const times = lanes.map(({ secondsToDrain }) => secondsToDrain)
  if (times.includes(null)) return html`unknown <span class="quiet">(nothing moves)</span>`
  return html`<span class="short">${drainText(Math.max(...times.map((one) => one ?? 0)))}</span>`
}

function diskSection({ spool }: Status): Html {
  const { diskBytes, bytesMax, freeBytes, freeBytesMin, hold } = spool
  return html`<section id="disk" data-region aria-labelledby="disk-title">
    <h2 id="disk-title">Disk</h2>
    <dl class="numbers">
      <div>
        <dt>Spool</dt>
        <dd>
          ${formatSize(diskBytes)}${bytesMax !== null && html` <span class="quiet">of ${formatSize(bytesMax)}</span>`}
        </dd>
      </div>
      <div>
        <dt>Free on the disk</dt>
        <dd>${freeBytes === null ? 'unknown' : formatSize(freeBytes)}</dd>
      </div>
    </dl>
    ${bytesMax !== null && html`<meter min="0" max="${bytesMax}" value="${diskBytes}" high="${Math.round(bytesMax * 0.8)}" aria-label="Spool, of its limit">${Math.round((100 * diskBytes) / bytesMax)} %</meter>`}
    ${hold === null && html`<p>${fullText(spool)}</p>`}
    <p class="quiet">Below ${formatSize(freeBytesMin)} free, acknowledgements are held.</p>
    ${hold !== null && html`<p class="bad">All acknowledgements are held: ${hold}.</p>`}
  </section>`
}

function fullText({ secondsToFull, fullFirst, secondsToFullWhy }: Status['spool']): Html {
  if (secondsToFull === null) return html`<span class="quiet">${secondsToFullWhy}</span>`
  return html`If it goes on like this, the ${fullFirst} is full in
    <strong>about ${formatDuration(secondsToFull * 1000)}</strong>.`
}

function providersSection(status: Status): Html {
  return html`<section id="providers" data-region aria-labelledby="providers-title">
    <h2 id="providers-title">Providers</h2>
    ${
      status.providers.length === 0
        ? html`<p class="quiet">Nothing is delivered yet.</p>`
        : blocksView([providerTable(status)])
    }
  </section>`
}

function sourcesSection({ messageSources, addresses, clients, now }: Status): Html {
  return html`<section id="sources" data-region aria-labelledby="sources-title">
    <h2 id="sources-title">Message sources</h2>
    ${table({
      caption: 'The embedded broker and the bridges',
      columns: ['Source', 'Connection', '*Messages', '*Not acknowledged', '*Waiting there', 'Last message'],
      rows: messageSources.map((one) => [
        named(one.name),
        one.kind === 'broker' ? brokerText(addresses, clients.connections) : bridgeText(one, now),
        count(one.messages),
        count(one.outstanding),
        one.lag === null ? '' : count(one.lag),
        html`${ago(one.lastMessageAt, now)}${one.silent && html` <span class="bad">silent</span>`}`,
      ]),
    })}
  </section>`
}

function brokerText(addresses: readonly string[], connections: number): Html {
  const [first = ''] = addresses
  const others = addresses.length > 1 ? ` and ${addresses.length - 1} more` : ''
  return html`<code>${first}</code>${others}, ${plural(connections, 'client')} connected`
}

function bridgeText({ url, connections }: Status['messageSources'][number], now: string): Html {
  return html`<code>${url}</code>${connections.map(
      (one) =>
        html`<br /><span class="state ${one.state}">${one.state}</span> since
          ${ago(one.since, now)}${one.lastFault !== null && html`: ${one.lastFault}`}`,
    )}`
}

/** Without one, since when it would be known. */
function agoOrNone(at: string | null, status: Status): Html {
  if (at !== null) return ago(at, status.now)
  return html`<span class="quiet"
    >none since ${beganOf(status)}, ${ago(status.totals.sinceAt, status.now)}</span
  >`
}

/** What counts began with. */
function beganOf({ totals, startedAt }: Status): string {
  return totals.sinceAt > startedAt ? 'the spool was lost' : 'the start'
}

function totalsSection(status: Status): Html {
  const { totals, now } = status
  const began = beganOf(status)
  const rows: readonly [string, number, string][] = [
    ['Messages received', totals.messages, ''],
    ['Payloads stored', totals.payloads, ''],
    ['Payloads delivered', totals.delivered, ''],
    ['Duplicates', totals.duplicates, 'acknowledged, not stored again'],
    ['Ignored', totals.ignored, 'by a rule of the config'],
    ['Quarantined', totals.quarantined, ''],
    ['Not mapped', totals.unmappable, 'became dead letters'],
    ['Refused for good', totals.dead, 'by the service; became dead letters'],
    ['Dropped', totals.dropped, 'QoS 0, while nothing could be stored'],
    ['Damaged', totals.damaged, 'could not be read from the disk'],
  ]
  return html`<section id="totals" data-region aria-labelledby="totals-title">
    <h2 id="totals-title">Since ${began}, ${ago(totals.sinceAt, now)}</h2>
    <dl class="numbers">
      ${rows
        .filter(([, value], index) => index < 3 || value > 0)
        .map(
          ([name, value, note]) =>
            html`<div>
              <dt>${name}</dt>
              <dd>${count(value)}</dd>
              ${note !== '' && html`<dd class="quiet">${note}</dd>`}
            </div>`,
        )}
    </dl>
  </section>`
}
