// devices-page.ts: `/page/devices`: all devices, those that need a person first.

import {
  deviceOrderNames,
  deviceStateNames,
  deviceStates,
  type DeviceOrder,
  type DeviceState,
} from '../../../domain/device-state.ts'
import type { DeviceFilter } from '../../http/device-list.ts'
import type { DeviceView } from '../../types.ts'
import { html, nothing, type Html } from '../html.ts'
import { bars } from '../svg-plots.ts'
import { ago, count, link, named, rate, sentence } from '../shown-values.ts'
import { paging, table } from '../table.ts'
import { searchForm } from './search-form.ts'

export type DeviceRow = DeviceView & { messagesByHour?: readonly number[] | null }

export type DevicesShown = {
  now: string
  filter: DeviceFilter
  sort: DeviceOrder
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
  const { now, filter, sort, from, perPage, devices, more } = shown
  // Most gateways have one provider.
  const columns = devices.some(({ provider }) => (provider ?? 'default') !== 'default')
    ? linked
    : linked.slice(0, 1)
  const { find = '' } = filter
  const to = (place: number) => listLink(shown, place === 0 ? {} : { from: place })
  const pages = {
    previous: from > 0 ? to(Math.max(0, from - perPage)) : null,
    next: more ? to(from + perPage) : null,
  }
  const given = { ...filter, sort: sort === 'state' ? undefined : sort }
  return html`${searchForm({ path, operation: 'devices/list', asks: ['find'], given })}
    <div id="devices" data-region>
      ${stateLinks(shown)} ${orderLinks(shown)} ${filterLinks(shown)}
      ${paging(pages, 'Pages, before the list')}
      ${!shown.restored && html`<p class="bad">The records of devices are still being read.</p>`}
      ${table({
        caption: captionOf(shown),
        columns: [
          'Device',
          'State',
          'Why',
          'Last message',
          '*Per hour',
          'Last 24 h',
          'Last accepted',
          ...columns.map((name) => name.charAt(0).toUpperCase() + name.slice(1)),
        ],
        rows: devices.map((device) => [
          ...rowOf(device, now),
          ...columns.map((name) => device[name] && linkTo(shown, name, device[name])),
        ]),
        empty: find === '' ? 'No device.' : `No device whose name, asset or client id contains "${find}".`,
      })}
      ${paging(pages)}
    </div>`
}

/** The list with another filter or order, from its first device on. */
function listLink(
  { filter, sort }: DevicesShown,
  other: DeviceFilter & { sort?: DeviceOrder; from?: number },
) {
  const { sort: order, ...all } = { ...filter, sort, ...other }
  const given = Object.entries(all).map(([name, value]) => [name, value ?? null] as const)
  return link(path, { ...Object.fromEntries(given), sort: order === 'state' ? null : order })
}

function captionOf({ from, devices, filter, total }: DevicesShown): string {
  const { state, find } = filter
  const which = [
    ...(state === undefined ? [] : [deviceStates[state].words]),
    ...(find === undefined ? [] : [`with "${find}"`]),
    ...filterNames.flatMap((name) => (filter[name] === undefined ? [] : [`of ${name} ${filter[name]}`])),
  ]
  const of = which.length === 0 ? ` of ${total}` : ''
  return ['Devices', which.join(', '), `${from + 1} to ${from + devices.length}${of}`]
    .filter((part) => part !== '')
    .join(' ')
}

function stateLinks(shown: DevicesShown): Html {
  const { states, total } = shown
  const { state } = shown.filter
  const entries: [DeviceState | undefined, string, number][] = [
    [undefined, 'all', total],
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
            <a href="${listLink(shown, { state: one })}" ${one === state && html`aria-current="true"`}
              >${name} <span class="quiet">${count(number)}</span></a
            >
          </li>`,
      )}
  </ul>`
}

const orderWords: Readonly<Record<DeviceOrder, string>> = {
  state: 'needs a person',
  silent: 'longest silence',
  name: 'name',
  clock: 'worst clock',
  last: 'latest message',
}

function orderLinks(shown: DevicesShown): Html {
  return html`<ul class="tabs" aria-label="Order">
    <li class="quiet">Order:</li>
    ${deviceOrderNames.map(
      (one) =>
        html`<li>
          <a href="${listLink(shown, { sort: one })}" ${one === shown.sort && html`aria-current="true"`}
            >${orderWords[one]}</a
          >
        </li>`,
    )}
  </ul>`
}

const filterNames = ['source', 'provider', 'address'] as const

/** What else selects the devices, and how to leave it. */
function filterLinks(shown: DevicesShown): Html {
  const given = filterNames.filter((name) => shown.filter[name] !== undefined)
  if (given.length === 0) return nothing
  return html`<ul class="tabs" aria-label="Filters">
    ${given.map(
      (name) =>
        html`<li>
          Only ${name} ${named(shown.filter[name] ?? null)}
          <a href="${listLink(shown, { [name]: undefined })}">show all</a>
        </li>`,
    )}
  </ul>`
}

/** Their values are links to the devices that have them. */
const linked = ['source', 'provider'] as const

function linkTo(shown: DevicesShown, name: (typeof linked)[number], value: string): Html {
  return html`<a href="${listLink(shown, { [name]: value })}">${named(value)}</a>`
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
    device.why && sentence(device.why),
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
