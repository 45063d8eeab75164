"""Everything that can be done, as one table: menus, shortcuts, palette and the sheet of keys come from it."""
