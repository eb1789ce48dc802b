// browser.ts: what every view does in the browser: buttons to copy.
// Entry file of this folder; each other file is a script of its own, which a view loads when it needs it.
//
//   live-regions.ts   new values without a reload
//   tap-list.ts       messages as they come
//
// Plain DOM, no framework. Foreign text is set as text, never as markup.

document.documentElement.classList.add('scripted')
improve(document)
document.addEventListener('regions-renewed', () => improve(document))

function improve(root: ParentNode): void {
  for (const box of root.querySelectorAll<HTMLElement>('.copy')) addButton(box)
}

function addButton(box: HTMLElement): void {
  // A page without TLS, from another machine, may not use the clipboard.
  if (box.querySelector('button') !== null || !('clipboard' in navigator)) return
  const text = box.querySelector('code')?.textContent ?? ''
  const button = document.createElement('button')
  button.type = 'button'
  button.dataset['added'] = ''
  button.textContent = 'Copy'
  button.ariaLabel = `Copy: ${text.slice(0, 80)}`
  const result = document.createElement('span')
  result.dataset['added'] = ''
  result.role = 'status'
  button.addEventListener('click', () => {
    navigator.clipboard.writeText(text).then(
      () => (result.textContent = 'Copied.'),
      () => (result.textContent = 'Not copied: select the text.'),
    )
  })
  box.append(button, result)
}
