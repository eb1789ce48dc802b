// audit-page.ts: `/page/changes`: the changes that operators made.

import type { AuditAnswer, AuditEntry } from '../../audit/audit.ts'
import { html, type Html } from '../html.ts'
import { ago, at, count } from '../shown-values.ts'
import { table } from '../table.ts'

export function auditView({ answer, now }: { answer: AuditAnswer; now: string }): Html {
  return html`${table({
    caption: 'Changes that operators made, the newest first',
    columns: ['When', 'Change', 'Selection', 'By', 'Outcome', 'Result'],
    rows: answer.changes.map((one) => [
      html`${at(iso(one.at))} <span class="quiet">${ago(iso(one.at), now)}</span>`,
      html`<code>${one.change}</code>`,
      html`<code>${one.request}</code>`,
      byText(one),
      html`<span class="state ${one.outcome === 'done' ? 'delivered' : 'retried'}">${one.outcome}</span>`,
      resultText(one),
    ]),
    empty: 'Nobody changed anything.',
  })}
  ${answer.more && html`<p>There are more: <code>telemetry-gateway audit</code>.</p>`}
  ${answer.damaged > 0 && html`<p class="bad">${count(answer.damaged)} lines of the log cannot be read.</p>`}`
}

function byText({ by }: AuditEntry): Html {
  const user = by.user ?? 'unknown'
  if (by.via === 'tcp') return html`${user} <span class="quiet">from ${by.address}</span>`
  return html`${user}${by.sudoUser && html` (sudo by ${by.sudoUser})`} <span class="quiet">${by.via}</span>`
}

function resultText({ result }: AuditEntry): string {
  return Object.entries(result)
    .filter(([name]) => name !== 'dryRun')
    .map(([name, value]) => `${name} ${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join(', ')
}

function iso(time: number): string {
  return new Date(time).toISOString()
}
