// live-page.ts: `/page/live`: messages as they come, raw beside what they become. The list is the script's;
// without it, the view shows where else the messages are.

import { html, type Html } from '../html.ts'
import { quoted } from '../page-changes.ts'
import { link, toCopy } from '../shown-values.ts'

export type TapSelection = {
  device?: string | undefined
  topic?: string | undefined
  source?: string | undefined
}

export function liveView({ device = '', topic = '', source = '' }: TapSelection): Html {
  const command = ['telemetry-gateway tap']
  for (const [name, value] of Object.entries({ device, topic, source }))
    if (value !== '') command.push(`--${name} ${quoted(value)}`)
  const stream = link('/tap', { device, topic, source })
  return html`<form class="filter" role="search" action="/page/live">
      <label>Device <input type="search" name="device" value="${device}" autocomplete="off" /></label>
      <label
        >Topic filter
        <input
          type="search"
          name="topic"
          value="${topic}"
          placeholder="telemetry/v1/+/data"
          autocomplete="off"
      /></label>
      <label>Source <input type="search" name="source" value="${source}" autocomplete="off" /></label>
      <button>Show</button>
    </form>
    <div id="tap" data-stream="${stream}">
      <p class="without-script">
        Messages appear here in a browser with scripts. Without them, open <a href="${stream}">${stream}</a>,
        or run:
      </p>
      <div class="without-script">${toCopy(command.join(' '))}</div>
    </div>`
}
