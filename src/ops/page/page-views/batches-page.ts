// batches-page.ts: `/page/batches`: sealed batches that are not settled, those that wait for a person first;
// `/page/batch?id=`: one of them.

import type { BatchDetail, BatchList, BatchView } from '../../../delivery/types.ts'
import { formatSize } from '../../../std/quantity.ts'
import { html, type Html } from '../html.ts'
import { changes, type Access, type ChangeOffer } from '../page-changes.ts'
import { ago, at, count, link, named, sentence } from '../shown-values.ts'
import { facts, table } from '../table.ts'

export function batchesView({ list, now, access }: { list: BatchList; now: string; access: Access }): Html {
  const held = list.batches.filter(({ state }) => state === 'held')
  const others = list.batches.filter(({ state }) => state !== 'held')
  return html`<p class="quiet">
      A held batch is not sent because of its own answers; a person decides. The others go on without it.
    </p>
    <h2>Held</h2>
    ${table({
      caption: 'Held batches, the oldest first',
      columns: ['Batch', 'Why', 'Held', '*Payloads', 'Provider', 'May be processed'],
      rows: held.map((one) => [
        html`<a href="${link('/page/batch', { id: one.batchId })}"><code>${one.batchId}</code></a>`,
        html`<code>${one.held?.reason}</code> ${one.held !== null && sentence(one.held.why)}`,
        ago(iso(one.held?.since ?? one.sealedAt), now),
        count(one.payloads),
        named(one.provider),
        one.mayBeProcessed ? 'yes' : 'no',
      ]),
      empty: 'No batch is held.',
    })}
    ${held.length > 0 && changes(access, [{ action: 'batches/retry', parameters: { all: 1 }, name: 'Retry all held batches' }])}
    <h2>In flight and waiting</h2>
    ${table({
      caption: 'Sealed batches that are not held',
      columns: ['Batch', 'State', 'Sealed', '*Payloads', '*Size', 'Provider', '*Submissions', 'Next try'],
      rows: others.map((one) => [
        html`<a href="${link('/page/batch', { id: one.batchId })}"><code>${one.batchId}</code></a>`,
        one.state,
        ago(iso(one.sealedAt), now),
        count(one.payloads),
        formatSize(one.bytes),
        named(one.provider),
        count(one.submissions),
        one.nextTryAt === null ? '' : ago(iso(one.nextTryAt), now),
      ]),
    })}
    ${list.more > 0 && html`<p>${count(list.more)} more are not shown.</p>`}`
}

/** `detail`: null where the reader may not see it. */
export function batchView({ batch, now, access }: { batch: BatchDetail; now: string; access: Access }): Html {
  return html`${
      batch.held !== null &&
      html`<div class="verdict retried">
        <p class="word">Held <span class="since">since ${ago(iso(batch.held.since), now)}</span></p>
        <p class="sentence"><code>${batch.held.reason}</code> ${sentence(batch.held.why)}</p>
      </div>`
    }
    ${facts([
      ['Batch', html`<code>${batch.batchId}</code>`],
      ['State', batch.state],
      ['Provider', named(batch.provider)],
      ['Sealed', html`${at(iso(batch.sealedAt))}, ${ago(iso(batch.sealedAt), now)}`],
      ['Payloads', `${count(batch.payloads)}, ${formatSize(batch.bytes)}`],
      ['Submissions', count(batch.submissions)],
      ['The service may have processed it', batch.mayBeProcessed ? html`<strong>yes</strong>` : 'no'],
      ['Next try', batch.nextTryAt === null ? null : ago(iso(batch.nextTryAt), now)],
    ])}
    <h2>Change it</h2>
    ${changes(access, offersOf(batch))}
    <h2>Answers</h2>
    ${table({
      caption: 'The last answers since the start, the oldest first',
      columns: ['When', 'Answer', 'Request'],
      rows: batch.answers.map((one) => [
        at(iso(one.at)),
        sentence(one.text),
        html`<code>${one.requestId}</code>`,
      ]),
    })}
    <h2>Payloads</h2>
    ${table({
      caption: 'Payloads of the batch, in its order',
      columns: ['Payload', 'Device'],
      rows: batch.contents
        .slice(0, 500)
        .map((one) => [
          html`<a href="${link('/page/ledger', { payload: one.payloadId })}"
            ><code>${one.payloadId}</code></a
          >`,
          named(one.device),
        ]),
    })}
    ${batch.contents.length > 500 && html`<p>${count(batch.contents.length - 500)} more are not shown.</p>`}`
}

function offersOf({ batchId: id, payloads }: BatchView): readonly ChangeOffer[] {
  const offer = (action: string, name: string) => ({ action: `batches/${action}`, parameters: { id }, name })
  return [
    offer('retry', 'Retry under its batchId'),
    offer('reissue', 'Reissue under a new batchId'),
    ...(payloads > 1 ? [offer('split', 'Split')] : []),
    offer('mark-delivered', 'Mark delivered'),
    offer('drop', 'Drop'),
  ]
}

function iso(time: number): string {
  return new Date(time).toISOString()
}
