// dead-letter-page.ts: the form of `/page/dead-letter?id=` with which a person corrects a payload and sends
// it.

import { html, type Html } from '../html.ts'
import { jsonText } from '../shown-values.ts'

export function editForm(id: string, payload: unknown, token: string | null): Html {
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
