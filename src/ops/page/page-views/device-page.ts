// device-page.ts: `/page/device?key=`: what is known of one device: since when it is silent or refused and
// why, its last messages raw beside what they became, and what was kept of it.

import { isoTimes } from '../../../std/iso-times.ts'
import { deviceStates } from '../../../domain/device-state.ts'
import { formatDuration, plural } from '../../../std/quantity.ts'
import type { DeadLetterList } from '../../../dead-letters/types.ts'
import type { QuarantineView } from '../../http/quarantine-view.ts'
import { deadLetterTable } from '../../operations/dead-letter-text.ts'
import { deviceText } from '../../operations/device-text.ts'
import { quarantinedText } from '../../operations/quarantine-operations.ts'
import type { DeviceMessage } from '../../types.ts'
import { messagesSection } from '../last-messages.ts'
import { html, nothing, type Html } from '../html.ts'
import { changes, commandText, quoted, type Access } from '../page-changes.ts'
import { bars } from '../svg-plots.ts'
import { ago, at, capital, link, sentence, toCopy } from '../shown-values.ts'
import { blocksView } from '../shown-blocks.ts'
import type { DeviceRow } from './devices-page.ts'

export type DeviceShown = {
  now: string
  device: DeviceRow
  messages: readonly DeviceMessage[]
  /** Messages that were not kept. */
  skipped: number
  deadLetters: DeadLetterList | null
  quarantine: QuarantineView | null
  access: Access
}

export function deviceView(shown: DeviceShown): Html {
  return html`${story(shown)} ${acceptSection(shown)} ${muteSection(shown)} ${messagesSection(shown)}
  ${keptSections(shown)} ${rowSection(shown)} ${forgetSection(shown)}`
}

function story({ device, access, now }: DeviceShown): Html {
  const { state, since, why, client } = device
  const fault = client?.fault ?? null
  return html`<section id="story" data-region aria-label="State">
    <div class="verdict ${state}">
      <p class="word">
        ${capital(deviceStates[state].words)}${
          since !== null &&
          state !== 'sending' &&
          html` <span class="since">since ${at(since)}, ${ago(since, now)}</span>`
        }
      </p>
      ${why !== null && html`<p class="sentence">${sentence(why)}</p>`}
      ${fault !== null && state !== 'sending' && html`<p>Last fault of its connection, ${ago(fault.at, now)}: <code>${fault.reason}</code> ${sentence(fault.detail)}</p>`}
    </div>
    ${device.messagesByHour && html`<p>${bars(device.messagesByHour, 'Messages in each of the last 24 hours')}</p>`}
    ${blocksView(deviceText(device as Parameters<typeof deviceText>[0], { now: Date.parse(now) }))}
    ${
      client?.state === 'connected' &&
      changes(access, [
        { action: 'clients/kick', parameters: { name: client.clientId }, name: 'Close its connection' },
      ])
    }
    <p>
      <a href="${link('/page/ledger', { device: device.device })}">Ledger of this device</a>
      ·
      <a href="${link('/page/live', { device: device.device })}">Live messages</a>
    </p>
  </section>`
}

function acceptSection({ device, access }: DeviceShown): Html {
  if (device.kind !== 'device' || device.listed) return nothing
  const options = ['--asset', quoted(device.device), '--config', '/etc/telemetry-gateway/gateway.yaml']
  const command = commandText(['devices', 'accept'], device.device, options)
  return html`<section aria-labelledby="accept-title">
    <h2 id="accept-title">Accept this device</h2>
    <p>
      It is not in the device
      table.${
        device.quarantined > 0 &&
        html` ${plural(device.quarantined, 'message')} of it went to quarantine, and leaves it when the device
        is listed.`
      }
    </p>
    ${
      access.canChange &&
      html`<form class="filter" action="/page/change">
        <input type="hidden" name="change" value="devices/accept" />
        <input type="hidden" name="device" value="${device.device}" />
        <label>Asset <input name="asset" value="${device.device}" autocomplete="off" /></label>
        <label>Provider <input name="provider" value="${device.provider ?? ''}" autocomplete="off" /></label>
        <button>Accept…</button>
      </form>`
    }
    <p>
      ${access.canChange ? 'Or run' : 'Run'} this command on the machine of the gateway, with the asset that
      it belongs to:
    </p>
    ${toCopy(command)}
    <p>Or add this row to the device table; the gateway reads it within seconds:</p>
    ${toCopy(rowText(device), 'Row of the device table')}
  </section>`
}

function keptSections({ deadLetters, quarantine, device, access, now }: DeviceShown): Html {
  return html`${
    deadLetters !== null &&
    deadLetters.deadLetters.length > 0 &&
    html`<section aria-labelledby="dead-title">
      <h2 id="dead-title">Dead letters</h2>
      ${blocksView([deadLetterTable(isoTimes(deadLetters.deadLetters), Date.parse(now))])}
      <p>
        <a href="${link('/page/dead-letters', { device: device.device })}">All dead letters of this device</a>
      </p>
    </section>`
  }${
    quarantine !== null &&
    quarantine.messages.length > 0 &&
    html`<section aria-labelledby="quarantine-title">
      <h2 id="quarantine-title">In quarantine</h2>
      ${blocksView(quarantinedText(quarantine, { now: Date.parse(now) }))}
      ${changes(access, [
        ...(device.listed
          ? [
              {
                action: 'quarantine/release',
                parameters: { device: device.device },
                name: 'Release its messages',
              },
            ]
          : []),
        { action: 'quarantine/drop', parameters: { device: device.device }, name: 'Drop its messages' },
      ])}
    </section>`
  }`
}

function rowSection({ device }: DeviceShown): Html {
  if (device.kind !== 'device' || !device.listed) return nothing
  return html`<section aria-labelledby="row-title">
    <h2 id="row-title">Row of the device table</h2>
    ${toCopy(rowText(device), 'Row of the device table')}
  </section>`
}

/** With the header that names its columns. */
function rowText({ device, assetId, provider }: DeviceRow): string {
  const cells = [
    device,
    assetId ?? device,
    ...(provider === null || provider === 'default' ? [] : [provider]),
  ]
  const names = ['device', 'asset_id', 'provider'].slice(0, cells.length)
  return `${names.join(',')}\n${cells.map(csvCell).join(',')}`
}

function csvCell(text: string): string {
  return /[",\r\n]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

function muteSection({ device, access }: DeviceShown): Html {
  if (device.messages === 0) return nothing
  const { mutedUntil, mutedBy } = device
  const offer =
    mutedUntil === null
      ? {
          action: 'devices/mute',
          parameters: { device: device.device, for: '7d' },
          name: 'Mute it for 7 days',
        }
      : { action: 'devices/unmute', parameters: { device: device.device }, name: 'End it now' }
  return html`<section aria-labelledby="mute-title">
    <h2 id="mute-title">In the workshop</h2>
    <p class="quiet">
      ${
        mutedUntil === null
          ? 'Its silence is a problem (DEVICE_SILENT). Mute it while it is in the workshop.'
          : html`Its silence is no problem until
            ${at(mutedUntil)}${mutedBy === 'table' && ', by the device table'}.`
      }
    </p>
    ${mutedBy !== 'table' && changes(access, [offer])}
  </section>`
}

function forgetSection({ device, access, now }: DeviceShown): Html {
  if (device.messages === 0) return nothing
  const known =
    device.firstSeen === null
      ? ''
      : formatDuration(Math.max(0, Date.parse(now) - Date.parse(device.firstSeen)))
  return html`<section aria-labelledby="forget-title">
    <h2 id="forget-title">Forget it</h2>
    <p class="quiet">
      Deletes what is known of it${known !== '' && html` since ${known}`}: its record here, and what the
      mapping remembers.
    </p>
    ${changes(access, [{ action: 'devices/forget', parameters: { device: device.device }, name: 'Forget the device' }])}
  </section>`
}
