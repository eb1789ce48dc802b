// page-plots.ts: draws the plots of the overview with uPlot in the place of their SVG, from /history:
// values under the cursor, times in the zone of the gateway. It draws again with each sample, and for
// another width or another colour scheme.

type UPlotData = (number | null)[][]
type UPlot = {
  setData(data: UPlotData): void
  setSize(size: { width: number; height: number }): void
  destroy(): void
}
declare const uPlot: new (options: object, data: UPlotData, target: HTMLElement) => UPlot

type History = Record<string, (number | null)[]> & {
  atSeconds: number[]
  seconds: (number | null)[]
  answers: { kind: string; submissions: (number | null)[] }[]
}

type Cursor = { cursor: { idx?: number | null }; data: UPlotData }

type Drawn = { plot: UPlot; lines: string }

const height = 140
const zone = document.body.dataset['zone']
const drawn = new Map<HTMLElement, Drawn>()
const box = document.getElementById('plots')

if (box !== null) begin(box)

function begin(box: HTMLElement): void {
  const span = box.dataset['span'] ?? 'hour'
  const everyMs = span === 'hour' ? 10_000 : 120_000
  let readAt = 0
  const renew = async () => {
    if (document.hidden || Date.now() - readAt < everyMs - 500) return
    readAt = Date.now()
    const answer = await fetch(`/history?span=${encodeURIComponent(span)}`)
    if (answer.ok) for (const figure of figuresIn(box)) draw(figure, (await answer.clone().json()) as History)
  }
  const tried = () => renew().catch(() => undefined)
  const again = () => {
    for (const { plot } of drawn.values()) plot.destroy()
    drawn.clear()
    readAt = 0
    void tried()
  }
  new ResizeObserver(() => {
    for (const [figure, { plot }] of drawn) plot.setSize({ width: widthOf(figure), height })
  }).observe(box)
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', again)
  setInterval(() => void tried(), everyMs)
  document.addEventListener('visibilitychange', () => void tried())
  void tried()
}

function figuresIn(box: HTMLElement): HTMLElement[] {
  return [...box.querySelectorAll<HTMLElement>('[data-plot]')]
}

function draw(figure: HTMLElement, history: History): void {
  const { columns = '', per, plot: id } = figure.dataset
  const names = columns === 'answers' ? history.answers.map(({ kind }) => kind) : columns.split(' ')
  const values = names.map((name, index) => {
    const column = columns === 'answers' ? (history.answers[index]?.submissions ?? []) : (history[name] ?? [])
    return column.map((value, row) =>
      scaled(id === 'age' && value === null ? zeroIf(history, row) : value, history, { row, per }),
    )
  })
  const data = [history.atSeconds, ...values]
  const before = drawn.get(figure)
  if (before?.lines === names.join(' ')) {
    before.plot.setData(data)
    return showAt(figure, { cursor: {}, data })
  }
  if (columns === 'answers') nameLines(figure, names)
  before?.plot.destroy()
  const target = figure.querySelector<HTMLElement>('.drawing')
  if (target === null) return
  target.replaceChildren()
  drawn.set(figure, {
    plot: new uPlot(optionsOf(figure, names, id === 'age'), data, target),
    lines: names.join(' '),
  })
  showAt(figure, { cursor: {}, data })
}

/** A legend as the server makes it: kinds of answers come and go. */
function nameLines(figure: HTMLElement, names: readonly string[]): void {
  const like = document.querySelector('.plot .legend li')
  const items = names.map((name, index) => {
    const item = (like ?? document.createElement('li')).cloneNode(true) as HTMLElement
    item.className = `series-${(index % 5) + 1}`
    const label = item.querySelector('span')
    if (label !== null) label.textContent = name
    return item
  })
  figure.querySelector('.legend')?.replaceChildren(...items)
}

/** No age where nothing waits. */
function zeroIf(history: History, row: number): number | null {
  return history['waiting']?.[row] === 0 ? 0 : null
}

function scaled(
  value: number | null,
  { seconds }: History,
  { row, per }: { row: number; per: string | undefined },
): number | null {
  if (per === undefined || per === '') return value
  const covered = seconds[row] ?? null
  return value === null || covered === null || covered <= 0
    ? null
    : (value / covered) * (per === 'minute' ? 60 : 1)
}

function optionsOf(figure: HTMLElement, names: readonly string[], isAge: boolean): object {
  const style = getComputedStyle(figure)
  const axis = {
    stroke: resolved(figure, 'var(--quiet)'),
    grid: { stroke: resolved(figure, 'var(--line)'), width: 1 },
    ticks: { show: false },
    font: `11px ${style.fontFamily}`,
  }
  return {
    width: widthOf(figure),
    height,
    padding: [8, 8, 0, 0],
    legend: { show: false },
    hooks: { setCursor: [(plot: Cursor) => showAt(figure, plot)] },
    cursor: { y: false },
    scales: { y: { range: (_: unknown, _low: number, high: number) => [0, high > 0 ? high * 1.05 : 1] } },
    axes: [
      { ...axis, space: 70, values: (_: unknown, ticks: readonly number[]) => timeTexts(ticks) },
      {
        ...axis,
        size: 56,
        ...(isAge && { values: (_: unknown, ticks: number[]) => ticks.map(durationText) }),
      },
    ],
    series: [
      { label: 'time' },
      ...names.map((name, index) => ({
        label: name,
        ...strokeOf(figure, index),
        width: 1.5,
        points: { show: false },
      })),
    ],
  }
}

/** The values under the cursor, in the legend; without a cursor, the last ones. */
function showAt(figure: HTMLElement, { cursor, data }: Cursor): void {
  const [times = [], ...lines] = data
  const index = cursor.idx ?? times.length - 1
  const isAge = figure.dataset['plot'] === 'age'
  const time = figure.querySelector<HTMLElement>('.at')
  if (time !== null)
    time.textContent =
      typeof cursor.idx !== 'number'
        ? ''
        : new Date((times[index] ?? 0) * 1000).toLocaleTimeString('sv', { timeStyle: 'long', timeZone: zone })
  const most = figure.querySelector('.most')
  if (most !== null) most.textContent = valueText(Math.max(0, ...lines.flat().map((one) => one ?? 0)), isAge)
  for (const [line, shown] of figure.querySelectorAll('.legend strong').entries())
    shown.textContent = valueText(lines[line]?.[index] ?? null, isAge)
}

function valueText(value: number | null, isAge: boolean): string {
  if (value === null) return 'unknown'
  return isAge ? durationText(value) : value.toLocaleString(undefined, { maximumFractionDigits: 2 })
}

/** Colour and dashes are those of the legend. */
function strokeOf(figure: HTMLElement, index: number): { stroke: string; dash: number[] } {
  const line = figure.querySelectorAll('.legend .line')[index] ?? figure
  const { stroke, strokeDasharray } = getComputedStyle(line)
  return { stroke, dash: [...strokeDasharray.matchAll(/[\d.]+/g)].map(([length]) => Number(length)) }
}

/** A canvas knows no variables and no light-dark(). */
function resolved(figure: HTMLElement, value: string): string {
  const probe = document.createElement('span')
  probe.style.color = value
  figure.append(probe)
  const { color } = getComputedStyle(probe)
  probe.remove()
  return color
}

/** `14:05`, with seconds where marks are close, and with the date at the first of each day. */
function timeTexts(ticks: readonly number[]): string[] {
  const timeStyle = (ticks[1] ?? Infinity) - (ticks[0] ?? 0) < 60 ? 'medium' : 'short'
  let day = ''
  return ticks.map((seconds) => {
    const time = new Date(seconds * 1000)
    const before = day
    // The Swedish form is that of ISO 8601.
    day = time.toLocaleDateString('sv', { timeZone: zone })
    const clock = time.toLocaleTimeString('sv', { timeStyle, timeZone: zone })
    return day === before ? clock : `${clock}\n${day.slice(5)}`
  })
}

function durationText(seconds: number): string {
  if (seconds < 10) return `${Math.round(seconds * 10) / 10} s`
  if (seconds < 120) return `${Math.round(seconds)} s`
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`
  return seconds < 172_800 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86_400)} d`
}

function widthOf(figure: HTMLElement): number {
  return figure.querySelector('.drawing')?.clientWidth ?? figure.clientWidth
}
