// quarantine-page.ts: `/page/quarantine`: messages that wait until their device is listed or their clock is
// judged.

import { formatSize } from '../../../std/quantity.ts'
import type { QuarantineView } from '../../http/quarantine-view.ts'
import { html, type Html } from '../html.ts'
import { changes, type Access } from '../page-changes.ts'
import { ago, count, named } from '../shown-values.ts'
import { table } from '../table.ts'
import { deviceLink } from './devices-page.ts'

type QuarantineShown = { now: string; view: QuarantineView; access: Access }

export function quarantineOverview({ now, view, access }: QuarantineShown): Html {
  const unlisted = view.groups.filter(({ reason }) => reason === 'UNKNOWN_DEVICE')
  const others = view.groups.filter(({ reason }) => reason !== 'UNKNOWN_DEVICE')
  const columns = ['Device', 'Reason', 'Latest detail', '*Messages', 'Oldest', 'Latest']
  const rowOf = (group: QuarantineView['groups'][number]) => [
    group.device === null ? named(null) : deviceLink(group.device),
    html`<code>${group.reason}</code>`,
    group.detail,
    count(group.messages),
    ago(iso(group.oldestAt), now),
    ago(iso(group.latestAt), now),
  ]
  return html`${
      view.shelves.length > 0 &&
      html`<p>
        ${view.shelves.map(
          ({ kind, provider, messages, bytes }, index) =>
            html`${index > 0 && ' · '}${kind === 'clock' ? 'Clock not judged' : 'Device not listed'},
            ${named(provider)}: ${count(messages)} messages, ${formatSize(bytes)}`,
        )}
      </p>`
    }
    <h2>Devices that are not listed</h2>
    <p class="quiet">
      Their messages are mapped as soon as the device table lists the device. Open a device for the row and
      the command.
    </p>
    ${table({ caption: 'The most messages first', columns, rows: unlisted.map(rowOf) })}
    <h2>Messages with a time that is not trusted</h2>
    ${table({ caption: 'By device and reason', columns, rows: others.map(rowOf) })}
    ${view.more && html`<p>The first ${count(view.scanned)} were read. There are more.</p>`}
    ${
      others.length > 0 &&
      html`<h2>Change all of them</h2>
        ${changes(access, [
          { action: 'quarantine/release', parameters: { all: 1 }, name: 'Release' },
          {
            action: 'quarantine/release',
            parameters: { all: 1, restamp: 1 },
            name: 'Release with the time of arrival',
          },
        ])}`
    }`
}

function iso(time: number): string {
  return new Date(time).toISOString()
}
