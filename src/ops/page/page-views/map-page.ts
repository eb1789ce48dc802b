// map-page.ts: `/page/map`: the last position of each device on a plain projection, with a scale. Nothing
// comes from a map server. Positions of assets with a privacy profile are not kept, so they are not here.
//
// Degrees are equal lengths to the north, and shorter to the east by the cosine of the middle latitude:
// right for a fleet that is on one continent. Devices in the same small square are one mark.

import { plural } from '../../../std/quantity.ts'
import { deviceStateNames, deviceStates, type DeviceState } from '../../../domain/device-state.ts'
import { html, nothing, type Html } from '../html.ts'
import { count, link } from '../shown-values.ts'

export type Mapped = { device: string; state: DeviceState; latitude: number; longitude: number }

export type MapShown = {
  positions: readonly Mapped[]
  /** Devices without a position. */
  without: number
}

const width = 960
const height = 600
const margin = 40
/** Of a small fleet, and of a large one. */
const squares = { small: 8, large: 14 }
const largeFleet = 500
/** More marks than that cannot be passed with the keyboard; the list of devices has them, too. */
const focusableMax = 100
const labelWidth = 60
const labelHeight = 30
const metersPerDegree = 111_195

/** The state that needs a person most is on top, and names a square. */
const order = deviceStateNames.toReversed()

export function mapView({ positions, without }: MapShown): Html {
  const hidden =
    without > 0 &&
    html`<p class="quiet">
      ${count(without)} devices are not on it: they sent no position, or their asset has a privacy profile.
    </p>`
  if (positions.length === 0)
    return html`<p class="quiet">No device sent a position.</p>
      ${hidden}`
  const fit = fitted(positions)
  const marks = marksOf(positions, fit)
  return html`<figure class="map" id="map" data-region>
      <svg
        viewBox="0 0 ${width} ${height}"
        role="group"
        aria-label="Last positions of ${plural(positions.length, 'device')}"
      >
        ${gridOf(fit)} ${marks.map((mark) => markOf(mark, marks.length <= focusableMax))} ${scaleOf(fit)}
      </svg>
      <figcaption>${legend(positions)} <a href="/page/devices">The devices as a list</a></figcaption>
    </figure>
    ${hidden}`
}

type Fit = {
  toX(longitude: number): number
  toY(latitude: number): number
  pixelsPerMeter: number
  west: number
  east: number
  south: number
  north: number
}

function fitted(positions: readonly Mapped[]): Fit {
  let [west, east, south, north] = [180, -180, 90, -90]
  for (const { longitude, latitude } of positions) {
    west = Math.min(west, longitude)
    east = Math.max(east, longitude)
    south = Math.min(south, latitude)
    north = Math.max(north, latitude)
  }
  const shorter = Math.max(0.01, Math.cos((((south + north) / 2) * Math.PI) / 180))
  // At least 200 m, so that one device is in the middle of something.
  const least = 200 / metersPerDegree
  const wide = Math.max((east - west) * shorter, least)
  const tall = Math.max(north - south, least)
  const scale = Math.min((width - 2 * margin) / wide, (height - 2 * margin) / tall)
  const [middleX, middleY] = [(west + east) / 2, (south + north) / 2]
  return {
    toX: (longitude) => width / 2 + (longitude - middleX) * shorter * scale,
    toY: (latitude) => height / 2 - (latitude - middleY) * scale,
    pixelsPerMeter: scale / metersPerDegree,
    west: middleX - width / 2 / scale / shorter,
    east: middleX + width / 2 / scale / shorter,
    south: middleY - height / 2 / scale,
    north: middleY + height / 2 / scale,
  }
}

type Mark = { x: number; y: number; devices: string[]; state: DeviceState }

function marksOf(positions: readonly Mapped[], { toX, toY }: Fit): readonly Mark[] {
  const marks = new Map<string, Mark>()
  const square = positions.length > largeFleet ? squares.large : squares.small
  for (const { device, state, latitude, longitude } of positions) {
    const [x, y] = [Math.round(toX(longitude) * 10) / 10, Math.round(toY(latitude) * 10) / 10]
    const key = `${Math.floor(x / square)} ${Math.floor(y / square)}`
    const mark = marks.get(key)
    if (mark === undefined) marks.set(key, { x, y, devices: [device], state })
    else {
      mark.devices.push(device)
      if (order.indexOf(state) > order.indexOf(mark.state)) mark.state = state
    }
  }
  return [...marks.values()].sort((a, b) => order.indexOf(a.state) - order.indexOf(b.state))
}

function markOf({ x, y, devices, state }: Mark, isFocusable: boolean): Html {
  const [first = ''] = devices
  const to =
    devices.length === 1 ? link('/page/device', { key: first }) : link('/page/devices', { find: first })
  const radius = devices.length === 1 ? 4 : Math.round(Math.min(10, 5 + Math.log2(devices.length)))
  const shown = shapeOf(state, radius, { x, y, title: html`<title>${titleOf(devices, state)}</title>` })
  return html`<a href="${to}" ${!isFocusable && html`tabindex="-1"`}>${shown}</a>`
}

/** A shape of its own for each state: some people do not see the difference of the colours. */
const shapes: Readonly<Record<DeviceState, readonly [outline: keyof typeof outlines, isOpen?: 'open']>> = {
  sending: ['circle'],
  never_sent: ['circle', 'open'],
  muted: ['circle', 'open'],
  silent: ['square'],
  no_position: ['square', 'open'],
  refused: ['triangle'],
  repeating: ['triangle', 'open'],
  not_mapped: ['diamond'],
  not_accepted: ['diamond', 'open'],
  clock_wrong: ['hourglass'],
  id_shared: ['hourglass', 'open'],
  waiting: ['circle', 'open'],
}

/** Around the point where the path is. */
const outlines = {
  circle: (r: number) => `m${-r} 0a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0z`,
  square: (r: number) => `m${-r} ${-r}h${2 * r}v${2 * r}h${-2 * r}z`,
  triangle: (r: number) => `m0 ${-r}l${r} ${2 * r}h${-2 * r}z`,
  diamond: (r: number) => `m0 ${-r}l${r} ${r}l${-r} ${r}l${-r} ${-r}z`,
  hourglass: (r: number) => `m${-r} ${-r}h${2 * r}l${-2 * r} ${2 * r}h${2 * r}z`,
} as const

function shapeOf(state: DeviceState, radius: number, { x = 0, y = 0, title = nothing } = {}): Html {
  const [outline, isOpen = ''] = shapes[state]
  const d = `M${x} ${y}${outlines[outline](radius)}`
  return html`<path class="mark ${isOpen} ${state}" d="${d}">${title}</path>`
}

function titleOf(devices: readonly string[], state: DeviceState): string {
  const names = devices.slice(0, 5).join(', ')
  const more = devices.length > 5 ? ` and ${devices.length - 5} more` : ''
  return `${names}${more}: ${deviceStates[state].words}`
}

/** Lines at round degrees, with their names. */
function gridOf({ toX, toY, west, east, south, north }: Fit): Html {
  const step = roundDown((east - west) / 4)
  const digits = Math.max(0, -Math.floor(Math.log10(step)))
  const lines: Html[] = []
  for (let one = Math.ceil(west / step) * step; one < east; one += step) {
    const x = Math.round(toX(one))
    if (x > width - labelWidth) continue
    lines.push(
      html`<path class="grid" d="M${x} 0V${height}" /><text x="${x + 3}" y="12"
          >${Math.abs(one).toFixed(digits)}° ${one < 0 ? 'W' : 'E'}</text
        >`,
    )
  }
  for (let one = Math.ceil(south / step) * step; one < north; one += step) {
    const y = Math.round(toY(one))
    if (y < labelHeight) continue
    lines.push(
      html`<path class="grid" d="M0 ${y}H${width}" /><text x="3" y="${y - 3}"
          >${Math.abs(one).toFixed(digits)}° ${one < 0 ? 'S' : 'N'}</text
        >`,
    )
  }
  return html`<g aria-hidden="true">${lines}</g>`
}

function scaleOf({ pixelsPerMeter }: Fit): Html {
  const meters = roundDown(200 / pixelsPerMeter)
  const wide = Math.round(meters * pixelsPerMeter)
  const [x, y] = [width - 20 - wide, height - 20]
  const text = meters >= 1000 ? `${count(meters / 1000)} km` : `${count(meters)} m`
  return html`<g class="scale"
    ><path d="M${x} ${y - 5}v5h${wide}v-5" /><text x="${x}" y="${y - 8}">${text}</text></g
  >`
}

/** 1, 2 or 5 times a power of ten. */
function roundDown(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value))
  const factor = value / power
  return (factor >= 5 ? 5 : factor >= 2 ? 2 : 1) * power
}

function legend(positions: readonly Mapped[]): Html {
  const counts = Map.groupBy(positions, ({ state }) => state)
  return html`<ul class="legend">
    ${order.toReversed().map((state) => {
      const number = counts.get(state)?.length ?? 0
      return number === 0
        ? nothing
        : html`<li>
            <svg class="sample" viewBox="-6 -6 12 12" aria-hidden="true">${shapeOf(state, 4)}</svg>
            ${deviceStates[state].words} ${count(number)}
          </li>`
    })}
  </ul>`
}
