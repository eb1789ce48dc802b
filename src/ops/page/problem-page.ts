// problem-page.ts: a refused request as a view: what happened, why, what to do.

import type { JsonAnswer, TextAnswer } from '../http/json-answer.ts'
import { html } from './html.ts'
import { pageAnswer } from './layout.ts'
import { sentence } from './shown-values.ts'

export function problemPage({ status, value, headers = {} }: JsonAnswer): TextAnswer {
  const { code = '', what = '', why = '', act = '' } = value as Record<string, string>
  const body = html`<div class="condition error">
      <p>${sentence(why)}</p>
      <p class="act"><strong>What to do:</strong> ${sentence(act)}</p>
      <p class="quiet"><code>${code}</code></p>
    </div>
    <p><a href="/">Overview</a> · <a href="/page/devices">Devices</a></p>`
  const answer = pageAnswer({ title: what, body, path: '', status }, null)
  return { ...answer, headers: { ...answer.headers, ...headers } }
}
