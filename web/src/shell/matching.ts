/** Whether a label has all the words, or all the letters in order. */
export function matches(label: string, question: string): boolean {
  const text = label.toLowerCase();
  const words = question.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.every((word) => text.includes(word))) return true;
  let at = 0;
  for (const letter of question.toLowerCase().replace(/\s+/g, "")) {
    at = text.indexOf(letter, at) + 1;
    if (at === 0) return false;
  }
  return true;
}
