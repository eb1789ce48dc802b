// devices-page.ts: `/page/devices`: all devices, those that need a person first.

import { formatDuration } from '../../../std/quantity.ts'
import { deviceStateNames, deviceStates, type DeviceState } from '../../../domain/device-state.ts'
import type { DeviceView } from '../../types.ts'
import { html, type Html } from '../html.ts'
import { bars } from '../svg-plots.ts'
import { ago, count, link, named, rate } from '../shown-values.ts'
import { paging, table } from '../table.ts'

export type DeviceRow = DeviceView & { messagesByHour?: readonly number[] | null }

export type DevicesShown = {
  now: string
  find: string
  state: DeviceState | null
  /** Number of the first device. */
  from: number
  perPage: number
  total: number
  states: Readonly<Record<DeviceState, number>>
  restored: boolean
  /** Of this page. */
  devices: readonly DeviceRow[]
  more: boolean
}

const path = '/page/devices'

export function devicesView(shown: DevicesShown): Html {
  const { now, find, state, from, perPage, devices, more } = shown
  const to = (place: number) => link(path, { find, state, from: place === 0 ? null : place })
  return html`<form class="filter" role="search" action="${path}">
      <label
        >Name, asset or client id <input type="search" name="find" value="${find}" autocomplete="off"
      /></label>
      ${state !== null && html`<input type="hidden" name="state" value="${state}" />`}
      <button>Search</button>
    </form>
    <div id="devices" data-region>
      ${stateLinks(shown)}
      ${!shown.restored && html`<p class="bad">The records of devices are still being read.</p>`}
      ${table({
        caption: captionOf(shown),
        columns: ['Device', 'State', 'Why', 'Last message', '*Per hour', 'Last 24 h', 'Last accepted'],
        rows: devices.map((device) => rowOf(device, now)),
        empty: find === '' ? 'No device.' : `No device whose name, asset or client id contains "${find}".`,
      })}
      ${paging({
        previous: from > 0 ? to(Math.max(0, from - perPage)) : null,
        next: more ? to(from + perPage) : null,
      })}
    </div>`
}

function captionOf({ from, devices, state, find, total }: DevicesShown): string {
  const which = [state === null ? '' : deviceStates[state].words, find === '' ? '' : `with "${find}"`]
  const of = find === '' && state === null ? ` of ${total}` : ''
  return `Devices ${which.filter((one) => one !== '').join(', ')} ${from + 1} to ${from + devices.length}${of}`.replace(
    / {2,}/g,
    ' ',
  )
}

function stateLinks({ states, state, find, total }: DevicesShown): Html {
  const entries: [DeviceState | null, string, number][] = [
    [null, 'all', total],
    ...deviceStateNames.map((one): [DeviceState, string, number] => [
      one,
      deviceStates[one].words,
      states[one],
    ]),
  ]
  return html`<ul class="tabs" aria-label="States">
    ${entries
      .filter(([one, , number]) => number > 0 || one === state)
      .map(
        ([one, name, number]) =>
          html`<li>
            <a href="${link(path, { find, state: one })}" ${one === state && html`aria-current="true"`}
              >${name} <span class="quiet">${count(number)}</span></a
            >
          </li>`,
      )}
  </ul>`
}

function rowOf(device: DeviceRow, now: string) {
  return [
    html`${deviceLink(device.device)}${
      device.assetId !== null &&
      device.assetId !== device.device &&
      html`<br /><span class="quiet">${named(device.assetId)}</span>`
    }`,
    html`<span class="state ${device.state}">${deviceStates[device.state].words}</span>${
        device.since !== null &&
        device.state !== 'sending' &&
        html`<br /><span class="quiet">${ago(device.since, now)}</span>`
      }`,
    device.why,
    ago(device.lastSeen, now),
    rate(device.messagesPerHour),
    device.messagesByHour ? bars(device.messagesByHour, 'Messages in each of the last 24 hours') : null,
    ago(device.lastAccepted?.at ?? null, now),
  ]
}

/** A key may be longer than a browser sends. */
export function deviceLink(key: string): Html {
  const to = link('/page/device', { key })
  return to.length > 4000 ? named(key) : html`<a href="${to}">${named(key)}</a>`
}

/** `every 30 s`. */
export function rhythm(medianGapMs: number | null): string | null {
  return medianGapMs === null ? null : `every ${formatDuration(medianGapMs)}`
}

export function skewText(skewMs: number | null): string | null {
  if (skewMs === null) return null
  if (Math.abs(skewMs) < 2000) return 'right'
  return `${formatDuration(Math.abs(skewMs))} ${skewMs < 0 ? 'ahead' : 'behind'}`
}
