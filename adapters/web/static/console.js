"use strict";
// Commands get a button that copies them; without JavaScript they can be selected.
function furnish(root) {
  for (const box of root.querySelectorAll("pre[data-copy]")) {
    if (box.nextElementSibling && box.nextElementSibling.classList.contains("copy")) continue;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy quiet";
    button.textContent = "Copy command";
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(box.textContent);
        button.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(box);
        button.textContent = "Selected: press Ctrl+C";
      }
      setTimeout(() => { button.textContent = "Copy command"; }, 3000);
    });
    box.after(button);
  }
}
addEventListener("DOMContentLoaded", () => furnish(document));
document.addEventListener("htmx:load", (event) => furnish(event.target));
