// tap-list.ts: messages as they come, raw beside what they become; the newest first. At most `shownMax` are
// kept. `Pause` stops the list, not the gateway; so does the focus in it, which the next messages would push
// away.

const shownMax = 100

type Entry = {
  kind: string
  at?: string
  topic?: string
  client?: string
  message?: string
  hex?: string
  userProperties?: Record<string, string>
  properties?: Record<string, unknown>
  result?: string
  reason?: string
  detail?: string
  payloads?: unknown[]
  count?: number
}

const box = document.getElementById('tap')
if (box !== null) show(box)

function show(box: HTMLElement): void {
  const state = element('p', 'quiet', 'Waiting for messages.')
  state.role = 'status'
  const pause = element('button', '', 'Pause')
  const list = element('div', 'messages', '')
  let isPaused = false
  let shown = 0
  let missed = 0
  pause.addEventListener('click', () => {
    isPaused = !isPaused
    pause.textContent = isPaused ? 'Go on' : 'Pause'
  })
  box.replaceChildren(state, pause, list)

  const stream = new EventSource(box.dataset['stream'] ?? '/tap')
  stream.addEventListener('message', ({ data }: MessageEvent<string>) => {
    const entry = JSON.parse(data) as Entry
    if (entry.kind === 'dropped') missed += entry.count ?? 0
    const isHeld = isPaused || list.matches(':focus-within')
    if (isHeld) missed += 1
    if (isHeld || (entry.kind !== 'message' && entry.kind !== 'closed')) return
    shown += 1
    list.prepend(articleOf(entry))
    while (list.childElementCount > shownMax) list.lastElementChild?.remove()
  })
  stream.addEventListener('error', () => {
    state.textContent = 'The gateway sends no messages: it does not answer, or too many taps are open.'
  })
  // Not at each message: a screen reader would say every one.
  setInterval(() => {
    if (stream.readyState !== EventSource.OPEN) return
    const heldText = list.matches(':focus-within') ? ' The list waits while the focus is in it.' : ''
    const missedText = missed === 0 ? '' : `, ${missed} not shown`
    state.textContent = `${shown} ${shown === 1 ? 'message' : 'messages'} shown${missedText}.${heldText}`
  }, 2000)
}

function articleOf(entry: Entry): HTMLElement {
  const article = element('article', 'message', '')
  const head = element('h2', '', '')
  const time = element(
    'time',
    '',
    entry.at === undefined
      ? ''
      : new Date(entry.at).toLocaleTimeString('sv', {
          timeStyle: 'long',
          timeZone: document.body.dataset['zone'],
        }),
  )
  const became = entry.kind === 'closed' ? 'payloads of messages that waited' : (entry.result ?? '')
  head.append(time, ' ', element('span', `state ${stateOf(became)}`, became))
  article.append(head)
  if (entry.topic !== undefined) {
    const line = element('p', '', '')
    line.append(element('code', '', entry.topic), ' ', element('span', 'quiet', entry.client ?? ''))
    article.append(line)
  }
  const properties = { ...entry.userProperties, ...entry.properties }
  const named = Object.entries(properties).map(([name, value]) => `${name} ${String(value)}`)
  if (named.length > 0) article.append(element('p', 'quiet', named.join(', ')))
  const why = [entry.reason, entry.detail].filter((one) => one !== undefined).join(' ')
  if (why !== '') article.append(element('p', 'bad', why))
  const beside = element('div', 'beside', '')
  if (entry.topic !== undefined) beside.append(pre('As it came', entry.message ?? entry.hex ?? ''))
  const payloads = element('div', '', '')
  for (const payload of entry.payloads ?? [])
    payloads.append(pre('As it is sent', JSON.stringify(payload, null, 2)))
  beside.append(payloads)
  article.append(beside)
  return article
}

function stateOf(became: string): string {
  if (became.startsWith('payloads') || became === 'part') return 'delivered'
  return became === 'unmappable' ? 'dead' : 'retried'
}

function pre(name: string, text: string): HTMLElement {
  const outer = element('pre', '', '')
  outer.tabIndex = 0
  outer.role = 'group'
  outer.ariaLabel = name
  outer.append(element('code', '', text))
  return outer
}

/** `text` is text, whatever is in it. */
function element(name: string, className: string, text: string): HTMLElement {
  const made = document.createElement(name)
  if (className !== '') made.className = className
  if (text !== '') made.textContent = text
  return made
}
